//! Memory of which a read or write beside it ends the process.

use std::ptr;

/// Larger than a page of any machine that tests run on; kernels that stray do not stray further.
const GUARD: usize = 1 << 16;

/// Bytes between two parts of memory that cannot be touched, next to one of them.
pub struct Guarded {
    mapping: *mut u8,
    length: usize,
    bytes: *mut u8,
}

/// Which end lies next to a guard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Before,
    Behind,
}

impl Guarded {
    /// Takes a copy of `bytes`.
    pub fn new(bytes: &[u8], side: Side) -> Self {
        let middle = bytes.len().next_multiple_of(GUARD).max(GUARD);
        let length = middle + 2 * GUARD;
        let before = match side {
            Side::Before => GUARD,
            Side::Behind => GUARD + middle - bytes.len(),
        };
        // SAFETY: a new private mapping; the parts that are made accessible and written lie in it.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let mapping = libc::mmap(ptr::null_mut(), length, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(mapping, libc::MAP_FAILED, "no memory");
            let mapping = mapping.cast::<u8>();
            let access = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(mapping.add(GUARD).cast(), middle, access), 0);
            let copy = mapping.add(before);
            ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len());
            Self { mapping, length, bytes: copy }
        }
    }

    pub fn address(&self) -> u64 {
        self.bytes as u64
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is this one's, and nothing reads it any more.
        unsafe { libc::munmap(self.mapping.cast(), self.length) };
    }
}
