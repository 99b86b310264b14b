//! Reading one file whole.

use forebay_core::Bytes;
use forebay_core::ports::{Fault, Heap, HostMemory, Stage};
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Largest file that is read whole; no image in a data set comes near, devices and pipes end here.
const MAX_FILE_BYTES: u64 = 1 << 31;

/// All bytes of the file at `path`.
///
/// # Errors
/// A fault at stage read: no such file, a folder, no permission, too large, an I/O error.
pub fn read_file(path: &Path) -> Result<Vec<u8>, Fault> {
    let file = read_file_if(path, &Heap, |_| true)?.expect("everything was admitted");
    Ok(file.to_vec())
}

/// As [`read_file`], into `memory`, if `admit` says so to the file's size; else `None`.
pub(crate) fn read_file_if(
    path: &Path,
    memory: &dyn HostMemory,
    admit: impl FnOnce(u64) -> bool,
) -> Result<Option<Bytes>, Fault> {
    read(path, memory, admit).map_err(|error| Fault::new(Stage::Read, reason(&error)))
}

fn read(
    path: &Path,
    memory: &dyn HostMemory,
    admit: impl FnOnce(u64) -> bool,
) -> io::Result<Option<Bytes>> {
    // What cannot be opened without waiting (a pipe) is no image file: say so before opening it.
    let kind = std::fs::metadata(path)?;
    if kind.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let file = std::fs::File::open(path)?;
    let len = file.metadata()?.len();
    if len > MAX_FILE_BYTES {
        return Err(io::Error::other(format!(
            "file of {len} bytes is larger than the limit of {MAX_FILE_BYTES}"
        )));
    }
    if !admit(len) {
        return Ok(None);
    }
    let len = usize::try_from(len).map_err(|_| ErrorKind::OutOfMemory)?;
    let mut memory = memory.take(len).map_err(|fault| io::Error::other(fault.reason))?;
    let mut filled = 0;
    while filled < len {
        match file.read_at(&mut memory.bytes_mut()[filled..], filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    // The file shrank meanwhile; the decoder will say what is missing.
    Ok(Some(Bytes::lent(memory, filled)))
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::NotFound => "no such file".into(),
        ErrorKind::PermissionDenied => "permission denied".into(),
        ErrorKind::IsADirectory => "is a directory, expected a file".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason_of(path: &Path) -> String {
        let fault = read_file(path).expect_err("must not be readable");
        assert_eq!(fault.stage, Stage::Read);
        fault.reason
    }

    #[test]
    fn whole_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a file [1] \u{e9}.jpg");
        std::fs::write(&path, vec![7; 100_000]).unwrap();
        assert_eq!(read_file(&path), Ok(vec![7; 100_000]));
        std::fs::write(&path, []).unwrap();
        assert_eq!(read_file(&path), Ok(vec![]));
    }

    #[test]
    fn t02_what_is_no_file_says_so() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(reason_of(&folder.path().join("gone.jpg")), "no such file");
        assert_eq!(reason_of(folder.path()), "is a directory, expected a file");
        assert_eq!(reason_of(Path::new("/dev/zero")), "not a regular file");
    }
}
