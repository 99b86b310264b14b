//! Entries as files: read, written, counted, dropped.

use super::Key;
use crate::driver::Cubin;
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Begins a file; the number counts changes of its layout: magic, SHA-256 of the code, the code.
const MAGIC: &[u8; 8] = b"forebay1";
const SUFFIX: &str = "cubin";
/// What a process that died left of a file it was writing.
const TEMPORARY: &str = "tmp";
const TEMPORARY_AGE: Duration = Duration::from_secs(60 * 60);

#[derive(Debug, Clone)]
pub(super) struct Folder(PathBuf);

/// One file.
#[derive(Debug)]
pub(super) struct Entry {
    path: PathBuf,
    pub(super) bytes: u64,
    used: SystemTime,
}

impl Folder {
    pub(super) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn file(&self, key: &Key) -> PathBuf {
        self.0.join(format!("{key}.{SUFFIX}"))
    }

    /// The code of a key; None if there is none, or what there is is damaged.
    pub(super) fn read(&self, key: &Key) -> Option<Cubin> {
        // An empty or relative name would make the current folder, anybody's, a source of code.
        let path = Some(self.file(key)).filter(|path| path.is_absolute())?;
        let content = fs::read(&path).ok()?;
        let (sum, code) = content.strip_prefix(MAGIC)?.split_at_checked(32)?;
        if Sha256::digest(code).as_slice() != sum {
            return None;
        }
        // Says when it was last used. A folder that is not ours to write still serves.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        Some(Cubin::new(code.to_vec()))
    }

    /// Keeps a code; whoever reads meanwhile sees what was there before, or all of it.
    pub(super) fn write(&self, key: &Key, cubin: &Cubin) -> io::Result<()> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        self.create()?;
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let temporary = self.0.join(format!("{key}.{}-{count}.{TEMPORARY}", std::process::id()));
        let written = (|| {
            let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
            file.write_all(MAGIC)?;
            file.write_all(&Sha256::digest(cubin.bytes()))?;
            file.write_all(cubin.bytes())?;
            // Or a crash of the machine could leave the name without the content.
            file.sync_all()?;
            fs::rename(&temporary, self.file(key))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// The file whose lock says that somebody compiles.
    pub(super) fn lock_file(&self) -> io::Result<File> {
        self.create()?;
        OpenOptions::new().write(true).create(true).truncate(false).open(self.0.join("lock"))
    }

    /// What may run on the user's device is the user's to write alone.
    fn create(&self) -> io::Result<()> {
        if !self.0.is_absolute() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "no folder to keep kernels in",
            ));
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)
    }

    pub(super) fn entries(&self) -> Vec<Entry> {
        self.files(SUFFIX)
    }

    fn files(&self, suffix: &str) -> Vec<Entry> {
        let Ok(entries) = fs::read_dir(&self.0) else { return Vec::new() };
        entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let path = entry.path();
                let data = entry.metadata().ok().filter(fs::Metadata::is_file)?;
                (path.extension()? == suffix).then_some(Entry {
                    path,
                    bytes: data.len(),
                    used: data.modified().ok()?,
                })
            })
            .collect()
    }

    /// Drops what is old, and the least used beyond a number of files.
    pub(super) fn prune(&self, keep: usize, max_age: Duration) {
        let now = SystemTime::now();
        let older = |entry: &Entry, age| now.duration_since(entry.used).is_ok_and(|is| is > age);
        let mut entries = self.entries();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
        let dropped = entries
            .into_iter()
            .enumerate()
            .filter(|(rank, entry)| *rank >= keep || older(entry, max_age))
            .map(|(_, entry)| entry);
        let abandoned =
            self.files(TEMPORARY).into_iter().filter(|entry| older(entry, TEMPORARY_AGE));
        for entry in dropped.chain(abandoned) {
            // Another process may have been faster.
            let _ = fs::remove_file(entry.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::Version;
    use crate::nvrtc::{Program, Source};

    fn key(number: usize) -> Key {
        let text = number.to_string();
        let source = Source { name: "a.cu", text: &text };
        let program = Program { source, headers: &[], options: &[] };
        Key::new(&program, "sm_90", Version { major: 13, minor: 0 })
    }

    #[test]
    fn what_is_damaged_counts_as_absent() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path().join("deep/er"));
        let cubin = Cubin::new(b"some machine code".to_vec());
        folder.write(&key(0), &cubin).unwrap();
        assert_eq!(folder.read(&key(0)).as_ref(), Some(&cubin));
        let file = folder.file(&key(0));
        let whole = fs::read(&file).unwrap();
        for len in 0..whole.len() {
            fs::write(&file, &whole[..len]).unwrap();
            assert_eq!(folder.read(&key(0)), None, "cut to {len} bytes");
            let mut flipped = whole.clone();
            flipped[len] ^= 1;
            fs::write(&file, flipped).unwrap();
            assert_eq!(folder.read(&key(0)), None, "byte {len} flipped");
        }
        folder.write(&key(0), &cubin).unwrap();
        assert_eq!(folder.read(&key(0)), Some(cubin));
    }

    #[test]
    fn the_least_used_go_first_and_reading_is_use() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path().into());
        let now = SystemTime::now();
        for number in 0..6 {
            folder.write(&key(number), &Cubin::new(vec![1])).unwrap();
            let used = now - Duration::from_secs(100 * (number as u64 + 1));
            File::open(folder.file(&key(number))).unwrap().set_modified(used).unwrap();
        }
        assert!(folder.read(&key(5)).is_some());
        folder.prune(3, Duration::from_secs(150));
        let kept: Vec<usize> = (0..6).filter(|&n| folder.file(&key(n)).exists()).collect();
        assert_eq!(kept, [0, 5]);
        folder.prune(1, Duration::from_secs(150));
        assert!(folder.read(&key(5)).is_some());
        assert_eq!(folder.entries().len(), 1);
    }

    #[test]
    fn only_what_the_dead_left_is_cleared_away() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::new(place.path().into());
        let (fresh, stale) = (place.path().join("a.1-0.tmp"), place.path().join("b.2-0.tmp"));
        for path in [&fresh, &stale, &place.path().join("notes.txt")] {
            fs::write(path, "x").unwrap();
        }
        let old = SystemTime::now() - 2 * TEMPORARY_AGE;
        File::open(&stale).unwrap().set_modified(old).unwrap();
        folder.prune(64, Duration::from_secs(1));
        assert!(fresh.exists() && !stale.exists() && place.path().join("notes.txt").exists());
    }
}
