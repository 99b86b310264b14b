//! The cache among processes and in folders that do not work. The "compiler" only counts its runs.

use super::*;
use crate::find::Version;
use crate::nvrtc::{Program, Source};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::{Child, Command};

fn key() -> Key {
    let source = Source { name: "a.cu", text: "extern \"C\" __global__ void a() {}" };
    let program = Program { source, headers: &[], options: &[] };
    Key::new(&program, "sm_90", Version { major: 13, minor: 2 })
}

fn code() -> Cubin {
    Cubin::new((0..200_000u32).map(|i| i.to_le_bytes()[i as usize % 3]).collect())
}

/// What a child does, in the folder that it was started in, once its parent says go.
#[test]
#[ignore = "runs as a child of the tests below"]
fn child() {
    if !Path::new("runs").exists() {
        return;
    }
    while !Path::new("go").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let compile = || {
        OpenOptions::new().append(true).open("runs").unwrap().write_all(b".").unwrap();
        std::thread::sleep(Duration::from_millis(300));
        Ok(code())
    };
    let (cubin, _) = Cache::new(std::env::current_dir().unwrap().join("kernels"))
        .get_or_compile(&key(), compile)
        .unwrap();
    assert_eq!(cubin, code());
}

fn spawn_child(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cache::tests::child", "--ignored", "--quiet"])
        .current_dir(folder)
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap()
}

fn folder_for_children() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("runs"), "").unwrap();
    folder
}

#[test]
fn of_many_processes_one_compiles_and_all_get_it() {
    let folder = folder_for_children();
    let mut children: Vec<Child> = (0..4).map(|_| spawn_child(folder.path())).collect();
    fs::write(folder.path().join("go"), "").unwrap();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(fs::read(folder.path().join("runs")).unwrap(), b".");
    let cache = Cache::new(folder.path().join("kernels"));
    assert_eq!(cache.usage().entries, 1);
    assert!(cache.usage().bytes > 200_000);
}

#[test]
fn a_process_that_dies_while_compiling_leaves_its_turn_to_the_next() {
    let folder = folder_for_children();
    fs::write(folder.path().join("go"), "").unwrap();
    let mut dies = spawn_child(folder.path());
    while fs::read(folder.path().join("runs")).unwrap().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    dies.kill().unwrap();
    dies.wait().unwrap();
    assert!(spawn_child(folder.path()).wait().unwrap().success());
    assert_eq!(fs::read(folder.path().join("runs")).unwrap(), b"..");
}

#[test]
fn a_damaged_entry_is_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    cache.get_or_compile(&key(), || Ok(code())).unwrap();
    let file = folder.path().join(format!("{}.cubin", key()));
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let (cubin, origin) = cache.get_or_compile(&key(), || Ok(code())).unwrap();
    assert!(matches!(origin, Origin::Compiler), "{origin:?}");
    assert_eq!(cubin, code());
    assert_eq!(fs::read(&file).unwrap(), whole);
}

#[test]
fn a_folder_that_cannot_be_made_costs_the_caching_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "in the way").unwrap();
    for folder in [file.join("forebay"), "".into(), "relative".into()] {
        let cache = Cache::new(folder);
        let (cubin, origin) = cache.get_or_compile(&key(), || Ok(code())).unwrap();
        assert!(matches!(origin, Origin::Unkept(_)), "{origin:?}");
        assert_eq!(cubin, code());
        assert_eq!(cache.usage(), Usage { entries: 0, bytes: 0 });
    }
}

#[test]
fn what_does_not_compile_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::new(folder.path());
    let broken = Error::Invalid { what: "broken".into() };
    let result = cache.get_or_compile(&key(), || Err(broken.clone()));
    assert_eq!(result.unwrap_err(), broken);
    assert_eq!(cache.usage().entries, 0);
}
