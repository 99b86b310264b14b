use super::*;
use std::fs;

fn folder_with(names: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        fs::write(folder.path().join(name), "no library").unwrap();
    }
    folder
}

fn places(folders: &[&tempfile::TempDir], cuda_major: Option<u32>) -> Places {
    Places { folders: folders.iter().map(|f| f.path().to_owned()).collect(), cuda_major }
}

/// Takes nothing, so that libraries of the machine that runs the tests do not matter.
fn search_in_vain(part: Part, places: &Places) -> Missing {
    search::<()>(part, places, |_| Err("is not wanted".into())).unwrap_err()
}

fn rejected_files(missing: &Missing) -> Vec<PathBuf> {
    missing.rejected.iter().map(|(path, _)| path.clone()).filter(|p| p.is_absolute()).collect()
}

#[test]
fn only_files_of_the_name_and_major_are_candidates() {
    let folder = folder_with(&[
        "libnvrtc.so.13",
        "libnvrtc-4a0b5c81.so.13",
        "libnvrtc.4a0b5c82.so.13",
        "libnvrtc.so.12",
        "libnvrtc.alt.so.13",
        "libnvrtc-builtins.so.13",
        "libnvrtc-builtins.so.13.2",
        "libnvrtc_static.a",
    ]);
    let names: Vec<String> = candidates(Part::Nvrtc, 13, folder.path())
        .iter()
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["libnvrtc.so.13", "libnvrtc-4a0b5c81.so.13", "libnvrtc.4a0b5c82.so.13"]);
    assert!(candidates(Part::NvJpeg, 13, folder.path()).is_empty());
    assert!(candidates(Part::NvJpeg, 13, Path::new("/nonexistent")).is_empty());
}

#[test]
fn torchs_major_comes_before_the_order_of_folders() {
    let (first, second) = (folder_with(&["libnvjpeg.so.13"]), folder_with(&["libnvjpeg.so.12"]));
    let in_order = [first.path().join("libnvjpeg.so.13"), second.path().join("libnvjpeg.so.12")];
    for (torch, expected) in [
        (Some(12), [in_order[1].clone(), in_order[0].clone()]),
        (Some(13), in_order.clone()),
        (Some(11), in_order.clone()),
        (None, in_order.clone()),
    ] {
        let missing = search_in_vain(Part::NvJpeg, &places(&[&first, &second], torch));
        assert_eq!(rejected_files(&missing), expected, "torch's CUDA {torch:?}");
    }
}

#[test]
fn folders_of_one_major_are_searched_in_order() {
    let (first, second) = (folder_with(&["libnvrtc.so.13"]), folder_with(&["libnvrtc.so.13"]));
    let missing = search_in_vain(Part::Nvrtc, &places(&[&second, &first], None));
    let expected = [second.path().join("libnvrtc.so.13"), first.path().join("libnvrtc.so.13")];
    assert_eq!(rejected_files(&missing), expected);
}

#[test]
fn what_is_missing_is_named_with_places_reasons_and_advice() {
    let (broken, empty) = (folder_with(&["libnvjpeg.so.12"]), folder_with(&[]));
    let missing = search_in_vain(Part::NvJpeg, &places(&[&broken, &empty], Some(12)));
    assert_eq!(missing.searched, [broken.path(), empty.path()]);
    let text = missing.to_string();
    for part in [
        "nvJPEG (libnvjpeg.so.12, libnvjpeg.so.13) was not found",
        broken.path().to_str().unwrap(),
        empty.path().to_str().unwrap(),
        "the system's loader",
        "libnvjpeg.so.12: ",
        "pip install \"forebay[cuda12]\"",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
}

#[test]
fn a_library_that_lacks_functions_is_passed_over() {
    // The C library stands for one of the right name and wrong content.
    let libc = Library::open(Path::new("libc.so.6")).unwrap();
    let file = libc.file_of("printf").unwrap();
    assert!(file.is_absolute(), "{}", file.display());
    let (wrong, right) = (folder_with(&[]), folder_with(&[]));
    fs::copy(&file, wrong.path().join("libnvrtc.so.13")).unwrap();
    std::os::unix::fs::symlink(&file, right.path().join("libnvrtc.so.13")).unwrap();
    let missing = search::<()>(Part::Nvrtc, &places(&[&wrong, &right], None), |library| {
        // SAFETY: used as an address only.
        match unsafe { library.function::<*const u8>("nvrtcVersion") } {
            Some(_) => Ok(()),
            None => Err("lacks nvrtcVersion".into()),
        }
    });
    // A toolkit on the loader's path may serve.
    if let Err(missing) = missing {
        let expected = (wrong.path().join("libnvrtc.so.13"), "lacks nvrtcVersion".to_owned());
        assert_eq!(missing.rejected[0], expected);
    }
}

#[test]
fn the_driver_is_asked_of_the_loader_first() {
    let folder = folder_with(&["libcuda.so.1"]);
    let mut seen = Vec::new();
    let missing = search_in_vain(Part::Driver, &places(&[&folder], Some(13)));
    seen.extend(rejected_files(&missing));
    assert_eq!(seen, [folder.path().join("libcuda.so.1")]);
    assert_eq!(missing.names, ["libcuda.so.1"]);
    assert!(missing.to_string().contains("install NVIDIA's driver"));
}
