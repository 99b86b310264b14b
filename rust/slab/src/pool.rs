//! Pageable host memory of our own, reused from batch to batch.
//!
//! Fresh pages of a 150 MB slab cost a page fault each, which is why freed blocks are kept.

use crate::{Allocator, Block, Error};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

const PAGE: usize = 4096;
/// A consumer that takes batches as fast as they come frees one within an image's time of the
/// next one's start. Waiting so long for it saves a whole batch's memory; a slower consumer
/// costs that wait once for each batch that its pipeline then holds.
const PATIENCE: Duration = Duration::from_millis(5);
/// Smaller blocks are not worth the wait: their batches take little more time themselves.
const WORTH: usize = 8 << 20;
/// Blocks of a length that are taken without a wait: the consumer's, and the one being written.
const USUAL: usize = 2;
/// Freed blocks of all lengths that are kept: ragged values have many.
const MOST_FREE: usize = 8;

/// Allocates host memory and keeps a few freed blocks for the next batches.
///
/// Blocks may outlive it: those return to the system when they are dropped.
#[derive(Debug)]
pub struct Pageable {
    pool: Arc<Pool>,
}

impl Pageable {
    /// Keeps at most `max_free` freed blocks of a length.
    pub fn new(max_free: usize) -> Self {
        Self { pool: Arc::new(Pool { max_free, ..Pool::default() }) }
    }

    /// Freed blocks that wait for reuse.
    pub fn free_blocks(&self) -> usize {
        self.pool.lock().free.len()
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
            None => Pages::new(len).ok_or_else(exhausted).inspect_err(|_| self.pool.failed(len))?,
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

#[derive(Debug, Default)]
struct Pool {
    max_free: usize,
    state: Mutex<State>,
    /// A block came back.
    returned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    free: VecDeque<Pages>,
    /// Lengths of the blocks that are in use.
    lent: Vec<usize>,
}

impl State {
    fn take(&mut self, len: usize) -> Option<Pages> {
        let found = self.free.iter().rposition(|pages| pages.len == len)?;
        self.free.remove(found)
    }

    fn lent(&self, len: usize) -> usize {
        self.lent.iter().filter(|&&lent| lent == len).count()
    }

    fn returned(&mut self, len: usize) {
        if let Some(found) = self.lent.iter().position(|&lent| lent == len) {
            self.lent.swap_remove(found);
        }
    }

    /// Keeps `pages`; gives out the longest unused ones if there are too many.
    fn keep(&mut self, pages: Pages, max_free: usize) -> Option<Pages> {
        let len = pages.len;
        self.free.push_back(pages);
        let alike = self.free.iter().filter(|pages| pages.len == len).count();
        let surplus = if alike > max_free {
            self.free.iter().position(|pages| pages.len == len)
        } else {
            (self.free.len() > MOST_FREE).then_some(0)
        };
        self.free.remove(surplus?)
    }
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A freed block of this length, if there is one soon; counts it, or the one that is made
    /// instead, as lent.
    fn take(&self, len: usize) -> Option<Pages> {
        let patience = if len < WORTH { Duration::ZERO } else { PATIENCE };
        let deadline = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            let found = state.take(len);
            let left = deadline.saturating_duration_since(Instant::now());
            if found.is_some() || state.lent(len) < USUAL || left.is_zero() {
                state.lent.push(len);
                return found;
            }
            let waited = self.returned.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Takes `pages` back; surplus ones go back to the system.
    fn put(&self, pages: Pages) {
        let mut state = self.lock();
        state.returned(pages.len);
        let surplus = state.keep(pages, self.max_free);
        drop(state);
        self.returned.notify_all();
        drop(surplus);
    }

    /// No block of this length could be made.
    fn failed(&self, len: usize) {
        self.lock().returned(len);
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
