//! Compiled kernels kept on disk, so that a second run, and a second rank, compile nothing.
//!
//! **Invariants**
//! - An entry is read whole or not at all: it is written under another name and renamed, and its
//!   checksum is compared before a device sees it.
//! - The cache is never needed: what goes wrong with it costs the time to compile, and is told
//!   in [`Origin`].
//! - It stays small: [`MAX_ENTRIES`] entries, none unused for [`MAX_AGE`].

mod folder;
mod key;

pub use key::Key;

use crate::Error;
use crate::driver::Cubin;
use folder::Folder;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// More than this many entries are not kept; one program for one architecture is one.
pub const MAX_ENTRIES: usize = 64;
/// What nobody has used for this long is dropped.
pub const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// How long one process waits for another that compiles. Compiling takes about a second; one that
/// takes longer has been stopped.
const PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// The folder that holds the kernels of one user.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: Folder,
}

/// Where a kernel came from.
#[derive(Debug)]
pub enum Origin {
    /// From disk.
    Cache,
    /// Compiled, and kept for the next.
    Compiler,
    /// Compiled, but it could not be kept.
    Unkept(io::Error),
}

/// What a folder holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// How many kernels.
    pub entries: usize,
    /// Their size.
    pub bytes: u64,
}

impl Cache {
    /// A cache in a folder, which is created when something is first kept. A name that is not
    /// absolute, such as none, keeps nothing.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: Folder::new(folder.into()) }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What it holds.
    pub fn usage(&self) -> Usage {
        let entries = self.folder.entries();
        Usage { entries: entries.len(), bytes: entries.iter().map(|entry| entry.bytes).sum() }
    }

    /// The kernel of a key; compiles it if nobody has. Of several processes that ask at once, one
    /// compiles and the others wait for it.
    ///
    /// # Errors
    /// Those of `compile`, and no others.
    pub fn get_or_compile(
        &self,
        key: &Key,
        compile: impl FnOnce() -> Result<Cubin, Error>,
    ) -> Result<(Cubin, Origin), Error> {
        if let Some(cubin) = self.folder.read(key) {
            return Ok((cubin, Origin::Cache));
        }
        // Dropped at the end, after the kernel has been kept. Without a lock (a file system that has
        // none, a process that was stopped) everybody compiles, and the last one's file stays.
        let lock = self.wait_for_lock(key);
        if let Ok(Turn::Made(cubin)) = lock {
            return Ok((cubin, Origin::Cache));
        }
        let cubin = compile()?;
        let origin = self.keep(key, &cubin);
        Ok((cubin, origin))
    }

    /// Keeps a kernel in place of what was kept; where it came from, then.
    pub fn keep(&self, key: &Key, cubin: &Cubin) -> Origin {
        let origin = match self.folder.write(key, cubin) {
            Ok(()) => Origin::Compiler,
            Err(error) => Origin::Unkept(error),
        };
        self.folder.prune(MAX_ENTRIES, MAX_AGE);
        origin
    }

    fn wait_for_lock(&self, key: &Key) -> io::Result<Turn> {
        let file = self.folder.lock_file()?;
        let started = Instant::now();
        loop {
            let locked = match file.try_lock() {
                Ok(()) => true,
                Err(std::fs::TryLockError::WouldBlock) => false,
                Err(std::fs::TryLockError::Error(error)) => return Err(error),
            };
            if let Some(cubin) = self.folder.read(key) {
                return Ok(Turn::Made(cubin));
            }
            if locked || started.elapsed() > PATIENCE {
                return Ok(Turn::Ours(file));
            }
            std::thread::sleep(POLL);
        }
    }
}

/// How the wait for another process ended.
#[derive(Debug)]
enum Turn {
    /// It made the kernel.
    Made(Cubin),
    /// It is for us to compile; the lock, if it was had, ends with the file.
    Ours(#[allow(dead_code, reason = "held for its lock")] std::fs::File),
}

#[cfg(test)]
mod tests;
