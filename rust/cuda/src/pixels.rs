//! Decoded pixels on their way to the renderer: on the device, or in page-locked memory.

use crate::driver::{DeviceBuffer, Event, PinnedBuffer};
use crate::pack::Source;
use crate::pool::{Loan, Pool};
use forebay_core::ports::{Fault, PixelBuffer, PixelMemory, Stage};
use std::any::Any;
use std::sync::Arc;

/// What a decoder of this crate puts into `Pixels::Device`.
#[derive(Debug)]
pub(crate) struct DevicePixels {
    pub(crate) source: Source,
    /// The decoder's last write.
    pub(crate) decoded: Arc<Event>,
    /// Holds the planes of several images.
    pub(crate) memory: Arc<Loan<DeviceBuffer>>,
}

/// Page-locked memory for decoders that run on the host.
#[derive(Debug)]
pub(crate) struct PinnedPixels {
    pub(crate) memory: Loan<PinnedBuffer>,
    bytes: usize,
}

impl PixelBuffer for PinnedPixels {
    fn bytes(&self) -> &[u8] {
        &self.memory.bytes()[..self.bytes]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory.bytes_mut()[..self.bytes]
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any + Send> {
        self
    }
}

/// Lends page-locked memory to decoders.
#[derive(Debug)]
pub(crate) struct PinnedMemory(pub(crate) Arc<Pool<PinnedBuffer>>);

impl PixelMemory for PinnedMemory {
    fn take(&self, bytes: usize) -> Result<Box<dyn PixelBuffer>, Fault> {
        let memory = self.0.loan(bytes).map_err(|error| Fault::new(Stage::Decode, error))?;
        Ok(Box::new(PinnedPixels { memory, bytes }))
    }
}
