//! Decoded pixels on their way to the renderer: on the device, or in page-locked memory.

use crate::Error;
use crate::driver::{DeviceBuffer, Event, PinnedBuffer};
use crate::pack::Source;
use crate::pool::{Loan, Pool};
use forebay_core::ports::{Fault, Heap, HostBuffer, HostMemory};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// What a decoder of this crate puts into `Pixels::Device`.
#[derive(Debug)]
pub(crate) struct DevicePixels {
    pub(crate) source: Source,
    /// The decoder's last write.
    pub(crate) decoded: Arc<Event>,
    /// Holds the planes of several images.
    pub(crate) memory: Arc<Loan<DeviceBuffer>>,
}

/// Pixels in memory of the device that is not ours, to be put into `Pixels::Device`.
#[derive(Debug)]
pub(crate) struct ForeignPixels(pub(crate) Source);

/// Page-locked memory that files or images of about the same time share: each image would take a
/// copy of its own otherwise, and the driver has one lock for all threads.
const CHUNK: usize = 8 << 20;
/// Images begin at multiples of this.
pub(crate) const ALIGN: usize = 256;

/// Page-locked memory of a file, or of what is decoded on the host: a range of a chunk, which nobody
/// else has.
#[derive(Debug)]
pub(crate) struct PinnedRange {
    pub(crate) chunk: Arc<Loan<PinnedBuffer>>,
    pub(crate) offset: usize,
    bytes: usize,
}

impl HostBuffer for PinnedRange {
    fn bytes(&self) -> &[u8] {
        let start = self.chunk.pointer().as_ptr();
        // SAFETY: the range lies in the chunk (`take`), and is this value's alone.
        unsafe { std::slice::from_raw_parts(start.add(self.offset), self.bytes) }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        let start = self.chunk.pointer().as_ptr();
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(start.add(self.offset), self.bytes) }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Lends page-locked memory to sources and decoders.
#[derive(Debug)]
pub(crate) struct PinnedMemory {
    pool: Arc<Pool<PinnedBuffer>>,
    /// What is left of the last chunk, from the offset on.
    open: Mutex<Option<(Arc<Loan<PinnedBuffer>>, usize)>>,
}

impl PinnedMemory {
    pub(crate) fn new(pool: &Arc<Pool<PinnedBuffer>>) -> Self {
        Self { pool: Arc::clone(pool), open: Mutex::default() }
    }

    fn range(&self, bytes: usize) -> Result<PinnedRange, Error> {
        let loan = |bytes| self.pool.loan(bytes).map(Arc::new);
        if bytes > CHUNK / 4 {
            return Ok(PinnedRange { chunk: loan(bytes)?, offset: 0, bytes });
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let (chunk, offset) = match open.take() {
            Some((chunk, offset)) if offset + bytes <= CHUNK => (chunk, offset),
            _ => (loan(CHUNK)?, 0),
        };
        *open = Some((Arc::clone(&chunk), (offset + bytes).next_multiple_of(ALIGN)));
        Ok(PinnedRange { chunk, offset, bytes })
    }
}

impl HostMemory for PinnedMemory {
    /// Other memory where none can be locked: that costs a copy, and is no fault of the file.
    fn take(&self, bytes: usize) -> Result<Box<dyn HostBuffer>, Fault> {
        match self.range(bytes) {
            Ok(range) => Ok(Box::new(range)),
            Err(_) => Heap.take(bytes),
        }
    }
}
