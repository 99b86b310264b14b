//! A device that is host memory, which only its own code touches.

use forebay_core::FieldSpec;
use forebay_core::ports::{DeviceMemory, Fault};
use forebay_slab::{Allocator, Block, Error, Pageable};
use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};

/// Allocates fields on a fake device, and everything else as [`Pageable`] does.
#[derive(Debug, Default)]
pub struct FakeDevice(Pageable);

impl Allocator for FakeDevice {
    fn allocate(&self, bytes: usize) -> Result<Block, Error> {
        self.0.allocate(bytes)
    }

    fn allocate_on_device(
        &self,
        spec: &FieldSpec,
        samples: usize,
    ) -> Result<Arc<dyn DeviceMemory>, Error> {
        let bytes = spec.item_bytes().unwrap_or(0) * samples;
        // What nobody writes must show.
        Ok(Arc::new(FakeMemory(Mutex::new(vec![0xDD; bytes]))))
    }

    fn eager(&self) -> bool {
        false
    }
}

/// A field on the fake device.
#[derive(Debug)]
pub struct FakeMemory(Mutex<Vec<u8>>);

impl FakeMemory {
    /// A copy of its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        self.lock().clone()
    }

    pub(super) fn write(&self, offset: usize, bytes: usize, fill: impl FnOnce(&mut [u8])) {
        fill(&mut self.lock()[offset..offset + bytes]);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl DeviceMemory for FakeMemory {
    fn address(&self) -> u64 {
        1 << 40
    }

    fn bytes(&self) -> usize {
        self.lock().len()
    }

    fn zero(&self, offset: usize, bytes: usize) -> Result<(), Fault> {
        self.write(offset, bytes, |memory| memory.fill(0));
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
