//! Blocks of memory and where they come from.

use crate::Error;
use forebay_core::FieldSpec;
use forebay_core::ports::DeviceMemory;
use std::any::Any;
use std::ptr::NonNull;
use std::sync::Arc;

/// Alignment of a block's start and of every field in it: a cache line, and what torch's own
/// CPU allocator gives.
pub(crate) const ALIGN: usize = 64;

/// Where blocks come from: our own pool, or memory that torch lends.
pub trait Allocator: Send + Sync {
    /// At least `bytes` bytes, aligned to 64.
    ///
    /// # Errors
    /// There is not enough memory.
    fn allocate(&self, bytes: usize) -> Result<Block, Error>;

    /// Device memory for a field of `samples` samples. Called when the batch is opened, on the
    /// consumer's thread, since the memory may be tied to that thread's stream.
    ///
    /// # Errors
    /// There is not enough memory, or no device.
    fn allocate_on_device(
        &self,
        spec: &FieldSpec,
        samples: usize,
    ) -> Result<Arc<dyn DeviceMemory>, Error> {
        let _ = samples;
        Err(Error::NoDevice { path: spec.path.clone() })
    }

    /// Whether a batch takes its host memory when it is opened, on the consumer's thread, and not
    /// just before its first sample is written, on whichever thread does that: batches that only
    /// wait for their turn then hold none.
    fn eager(&self) -> bool {
        true
    }
}

/// A contiguous piece of memory and the owner that gives it back when dropped.
pub struct Block {
    ptr: NonNull<u8>,
    len: usize,
    _owner: Box<dyn Any + Send>,
}

impl Block {
    /// Takes over memory that `owner` keeps alive.
    ///
    /// # Safety
    /// - `ptr` is valid for reads and writes of `len` bytes, from any thread, until `owner` is
    ///   dropped, and its bytes are initialised or were never seen by the compiler (memory of a
    ///   foreign allocator).
    /// - Nobody but the block's users reads or writes these bytes until then.
    pub unsafe fn from_raw_parts(ptr: NonNull<u8>, len: usize, owner: Box<dyn Any + Send>) -> Self {
        Self { ptr, len, _owner: owner }
    }

    /// The first byte.
    pub fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

// SAFETY: the memory may be used from any thread (first condition of `from_raw_parts`) and the
// owner is `Send`.
unsafe impl Send for Block {}
// SAFETY: a shared block gives away its address and length only.
unsafe impl Sync for Block {}

impl std::fmt::Debug for Block {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Block({} bytes)", self.len)
    }
}

/// A block from `allocator` that is as large and as well aligned as promised.
pub(crate) fn allocate(allocator: &dyn Allocator, bytes: usize) -> Result<Block, Error> {
    // Never empty: tensors want an address even for zero rows.
    let bytes = bytes.max(ALIGN);
    let block = allocator.allocate(bytes)?;
    let address = block.ptr.addr().get();
    if block.len < bytes || !address.is_multiple_of(ALIGN) {
        return Err(Error::BadBlock { expected: bytes, align: ALIGN, got: block.len, address });
    }
    Ok(block)
}
