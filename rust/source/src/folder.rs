//! Folders of class folders, by torchvision's rules (`torchvision.datasets.folder`).
//!
//! Classes are the sub-folders, sorted; a class's files are found by walking it with links
//! followed, folders in sorted order and file names sorted within each; extensions decide, case
//! folded. Hidden files count, as they do there.

use crate::{Error, Names};
use forebay_core::ports::Stop;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a folder of class folders holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderScan {
    /// Class names in the order of their numbers.
    pub classes: Vec<String>,
    /// Classes without a single file.
    pub empty: Vec<String>,
    /// File names relative to the root.
    pub names: Names,
    /// Class number of each file.
    pub labels: Vec<i64>,
}

/// Lists the classes and files under `root`; looks at `stop` at every folder.
///
/// # Errors
/// The root cannot be listed or has no sub-folder, or the scan was stopped.
pub fn scan_folder(root: &Path, extensions: &[String], stop: &Stop) -> Result<FolderScan, Error> {
    let mut classes: Vec<OsString> = Vec::new();
    for entry in list(root)? {
        if entry.is_dir {
            classes.push(entry.name);
        }
    }
    if classes.is_empty() {
        return Err(Error::NoClasses { path: root.into() });
    }
    classes.sort();
    let extensions: Vec<String> = extensions.iter().map(|ext| ext.to_lowercase()).collect();
    let mut scan = FolderScan {
        classes: classes.iter().map(|class| class.to_string_lossy().into_owned()).collect(),
        empty: Vec::new(),
        names: Names::default(),
        labels: Vec::new(),
    };
    for (number, class) in (0_i64..).zip(&classes) {
        let mut walk = Walk { root, extensions: &extensions, stop, open: HashSet::new() };
        let before = scan.names.len();
        walk.folder(class, &mut scan.names)?;
        if scan.names.len() == before {
            scan.empty.push(class.to_string_lossy().into_owned());
        }
        scan.labels.resize(scan.names.len(), number);
    }
    Ok(scan)
}

struct Walk<'a> {
    root: &'a Path,
    extensions: &'a [String],
    stop: &'a Stop,
    /// Device and inode of the folders being walked, so that a link to a parent ends.
    open: HashSet<(u64, u64)>,
}

impl Walk<'_> {
    fn folder(&mut self, relative: &OsStr, names: &mut Names) -> Result<(), Error> {
        if self.stop.raised() {
            return Err(Error::Stopped);
        }
        let path = self.root.join(relative);
        let identity = std::fs::metadata(&path).map(|data| (data.dev(), data.ino())).ok();
        if identity.is_some_and(|identity| !self.open.insert(identity)) {
            return Ok(());
        }
        // torchvision's os.walk passes over folders that it cannot list; a data set that silently
        // lost a class would be worse than an error.
        let mut entries = list(&path)?;
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let (folders, files): (Vec<_>, Vec<_>) =
            entries.into_iter().partition(|entry| entry.is_dir);
        for file in files.iter().filter(|file| has_extension(&file.name, self.extensions)) {
            names.push(&joined(relative, &file.name));
        }
        for folder in &folders {
            self.folder(OsStr::from_bytes(&joined(relative, &folder.name)), names)?;
        }
        if let Some(identity) = identity {
            self.open.remove(&identity);
        }
        Ok(())
    }
}

struct Entry {
    name: OsString,
    is_dir: bool,
}

fn list(path: &Path) -> Result<Vec<Entry>, Error> {
    let read = |path: &Path| {
        std::fs::read_dir(path)?
            .map(|entry| {
                let entry = entry?;
                let kind = entry.file_type()?;
                let is_dir = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
                Ok(Entry { name: entry.file_name(), is_dir })
            })
            .collect::<std::io::Result<Vec<_>>>()
    };
    read(path).map_err(|source| Error::List { path: path.into(), source })
}

fn joined(folder: &OsStr, name: &OsStr) -> Vec<u8> {
    [folder.as_bytes(), b"/", name.as_bytes()].concat()
}

fn has_extension(name: &OsStr, extensions: &[String]) -> bool {
    let name = name.to_string_lossy().to_lowercase();
    extensions.iter().any(|extension| name.ends_with(extension.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(root: &Path) -> Result<FolderScan, Error> {
        scan_folder(root, &[".jpg".into(), ".JPEG".into()], &Stop::default())
    }

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        root
    }

    #[test]
    fn order_and_classes_are_torchvisions() {
        let root = tree(&[
            "dog/10.jpg",
            "dog/9.JPG",
            "dog/sub/1.jpg",
            "dog/z.jpg",
            "dog/note.txt",
            "Cat/.hidden.jpeg",
            "Cat/a b[1].jpg",
            "bird/readme.md",
            "top.jpg",
        ]);
        let got = scan(root.path()).unwrap();
        assert_eq!(got.classes, ["Cat", "bird", "dog"]);
        assert_eq!(got.empty, ["bird"]);
        let names: Vec<String> = (0..got.names.len())
            .map(|i| String::from_utf8(got.names.get(i).to_vec()).unwrap())
            .collect();
        assert_eq!(
            names,
            [
                "Cat/.hidden.jpeg",
                "Cat/a b[1].jpg",
                "dog/10.jpg",
                "dog/9.JPG",
                "dog/z.jpg",
                "dog/sub/1.jpg",
            ]
        );
        assert_eq!(got.labels, [0, 0, 2, 2, 2, 2]);
    }

    #[test]
    fn links_are_followed_and_circles_end() {
        let root = tree(&["a/1.jpg", "elsewhere/deep/2.jpg"]);
        std::os::unix::fs::symlink(root.path().join("a"), root.path().join("a/loop")).unwrap();
        std::os::unix::fs::symlink(root.path().join("elsewhere"), root.path().join("b")).unwrap();
        let got = scan(root.path()).unwrap();
        assert_eq!(got.classes, ["a", "b", "elsewhere"]);
        assert_eq!(got.labels, [0, 1, 2]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let root = tree(&["only.jpg"]);
        assert!(matches!(scan(root.path()), Err(Error::NoClasses { .. })));
        let gone = scan(&root.path().join("gone")).unwrap_err();
        assert_eq!(forebay_core::HasKind::kind(&gone), forebay_core::ErrorKind::NotFound);
        let stop = Stop::default();
        stop.raise();
        let root = tree(&["a/1.jpg"]);
        assert!(matches!(scan_folder(root.path(), &[], &stop), Err(Error::Stopped)));
    }
}
