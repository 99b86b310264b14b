//! Pageable host memory of our own, reused from batch to batch.
//!
//! Fresh pages of a 150 MB slab cost a page fault each, which is why freed blocks are kept.

use crate::{Allocator, Block, Error};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, PoisonError, Weak};

const PAGE: usize = 4096;

/// Allocates host memory and keeps a few freed blocks for the next batches.
///
/// Blocks may outlive it: those return to the system when they are dropped.
#[derive(Debug)]
pub struct Pageable {
    pool: Arc<Pool>,
}

impl Pageable {
    /// Keeps at most `max_free` freed blocks.
    pub fn new(max_free: usize) -> Self {
        Self { pool: Arc::new(Pool { max_free, free: Mutex::default() }) }
    }

    /// Freed blocks that wait for reuse.
    pub fn free_blocks(&self) -> usize {
        self.pool.free().len()
    }
}

impl Default for Pageable {
    /// Enough for the default depth's slabs and their ragged values.
    fn default() -> Self {
        Self::new(8)
    }
}

impl Allocator for Pageable {
    fn allocate(&self, bytes: usize) -> Result<Block, Error> {
        let exhausted = || Error::Exhausted { bytes };
        // Whole pages, so that ragged values of nearly the same size share blocks.
        let len = bytes.max(1).checked_next_multiple_of(PAGE).ok_or_else(exhausted)?;
        let pages = match self.pool.take(len) {
            Some(pages) => pages,
            None => Pages::new(len).ok_or_else(exhausted)?,
        };
        let ptr = pages.ptr;
        let owner = Lent { pages: Some(pages), pool: Arc::downgrade(&self.pool) };
        // SAFETY: `pages` holds `len` initialised bytes from `ptr` on, and only `owner` has it.
        Ok(unsafe { Block::from_raw_parts(ptr, len, Box::new(owner)) })
    }

    fn eager(&self) -> bool {
        false
    }
}

#[derive(Debug)]
struct Pool {
    max_free: usize,
    free: Mutex<VecDeque<Pages>>,
}

impl Pool {
    fn free(&self) -> std::sync::MutexGuard<'_, VecDeque<Pages>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, len: usize) -> Option<Pages> {
        let mut free = self.free();
        let found = free.iter().rposition(|pages| pages.len == len)?;
        free.remove(found)
    }

    /// Keeps `pages`, and gives the longest unused ones back to the system if there are too many.
    fn put(&self, pages: Pages) {
        let mut free = self.free();
        free.push_back(pages);
        let evicted = (free.len() > self.max_free).then(|| free.pop_front());
        drop(free);
        drop(evicted);
    }
}

/// Pages that a block uses; they go back to the pool, if there still is one.
struct Lent {
    pages: Option<Pages>,
    pool: Weak<Pool>,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let (Some(pool), Some(pages)) = (self.pool.upgrade(), self.pages.take()) {
            pool.put(pages);
        }
    }
}

/// Pages of the system's own: a private mapping.
///
/// Not malloc's: glibc serves large blocks from its heaps as soon as one of them was freed, where
/// they are zeroed by hand and leave holes. Over 60 epochs of mixed photos (batches of 19 MB) the
/// process grew by 156 MB and went on growing; with mappings it is flat at 75 MB.
#[derive(Debug)]
struct Pages {
    ptr: NonNull<u8>,
    len: usize,
}

impl Pages {
    fn new(len: usize) -> Option<Self> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping at an address of the system's choice touches no other memory.
        let ptr = unsafe { libc::mmap(std::ptr::null_mut(), len, access, kind, -1, 0) };
        if ptr == libc::MAP_FAILED {
            return None;
        }
        Some(Self { ptr: NonNull::new(ptr.cast())?, len })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, whole, and `self` is its only owner.
        let status = unsafe { libc::munmap(self.ptr.as_ptr().cast(), self.len) };
        debug_assert_eq!(status, 0, "a whole mapping can be undone");
    }
}

// SAFETY: a mapping is not tied to a thread.
unsafe impl Send for Pages {}
