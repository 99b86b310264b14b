//! Memory of a device, page-locked memory of the host, and copies between them.

use super::sys::call;
use super::{Device, Stream};
use crate::Error;
use cudarc::driver::sys::CUdeviceptr;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;

/// Bytes on a device; freed when dropped, which waits for the device. Pools keep them.
#[derive(Debug)]
pub struct DeviceBuffer {
    device: Arc<Device>,
    pointer: CUdeviceptr,
    len: usize,
}

impl DeviceBuffer {
    /// Allocates at least one byte, with undefined content.
    ///
    /// # Errors
    /// [`Error::DeviceMemory`], or what the driver says.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self, Error> {
        let _current = device.enter()?;
        let mut pointer = 0;
        // SAFETY: the pointer lives for the call, and the context is current.
        unsafe {
            call!(
                device.driver(),
                cuMemAlloc_v2(&raw mut pointer, len.max(1)),
                "allocating {len} bytes on {device}"
            )
        }?;
        Ok(Self { device: Arc::clone(device), pointer, len })
    }

    /// Its address on the device, valid while this lives.
    pub fn pointer(&self) -> u64 {
        self.pointer
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies bytes of the host to `offset`, in the stream's order. From pageable memory the call
    /// returns once they are read; from page-locked memory it returns at once.
    ///
    /// # Errors
    /// [`Error::Invalid`] when they do not fit, or what the driver says.
    ///
    /// # Safety
    /// - `from` is neither freed nor written, and the buffer lives, until the stream has come
    ///   this far.
    pub unsafe fn upload(&self, offset: usize, from: &[u8], stream: &Stream) -> Result<(), Error> {
        let to = self.address(offset..offset.saturating_add(from.len()))?;
        let device = &self.device;
        let _current = device.enter()?;
        // SAFETY: `address` checked the bounds; the caller keeps both ends alive and still.
        unsafe {
            call!(
                device.driver(),
                cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), from.len(), stream.handle()),
                "copying {} bytes to {device}",
                from.len()
            )
        }
    }

    /// Copies `len` bytes from `offset` to the start of `to`, in the stream's order.
    ///
    /// # Errors
    /// [`Error::Invalid`] when they do not fit, or what the driver says.
    ///
    /// # Safety
    /// - Both buffers live, and `to` is neither read nor written, until the stream has come this
    ///   far.
    pub unsafe fn download(
        &self,
        offset: usize,
        len: usize,
        to: &mut PinnedBuffer,
        stream: &Stream,
    ) -> Result<(), Error> {
        let from = self.address(offset..offset.saturating_add(len))?;
        if len > to.len {
            let what = format!("{len} bytes do not fit a buffer of {}", to.len);
            return Err(Error::Invalid { what });
        }
        let device = &self.device;
        let _current = device.enter()?;
        // SAFETY: the bounds of both are checked; the caller keeps both ends alive and still.
        unsafe {
            call!(
                device.driver(),
                cuMemcpyDtoHAsync_v2(to.pointer.as_ptr().cast(), from, len, stream.handle()),
                "copying {len} bytes from {device}"
            )
        }
    }

    fn address(&self, range: Range<usize>) -> Result<CUdeviceptr, Error> {
        if range.end > self.len {
            let what = format!("bytes {range:?} do not lie in a buffer of {}", self.len);
            return Err(Error::Invalid { what });
        }
        Ok(self.pointer + range.start as CUdeviceptr)
    }
}

impl Drop for DeviceBuffer {
    fn drop(&mut self) {
        if let Ok(_current) = self.device.enter() {
            // SAFETY: `new` allocated it, and nobody holds it any more.
            let _ = unsafe {
                call!(self.device.driver(), cuMemFree_v2(self.pointer), "freeing memory")
            };
        }
    }
}

/// Sets bytes of a device's memory to a value, in the stream's order.
///
/// # Errors
/// What the driver says.
///
/// # Safety
/// - `len` bytes at `address` are memory of the stream's device, which lives, and which nobody
///   else uses, until the stream has come this far.
pub unsafe fn fill(address: u64, len: usize, value: u8, stream: &Stream) -> Result<(), Error> {
    let device = stream.device();
    let _current = device.enter()?;
    // SAFETY: the caller vouches for the range.
    unsafe {
        call!(
            device.driver(),
            cuMemsetD8Async(address, value, len, stream.handle()),
            "filling {len} bytes on {device}"
        )
    }
}

/// Page-locked bytes of the host, which devices read and write by themselves.
#[derive(Debug)]
pub struct PinnedBuffer {
    device: Arc<Device>,
    pointer: NonNull<u8>,
    len: usize,
}

// SAFETY: plain memory with one owner.
unsafe impl Send for PinnedBuffer {}
// SAFETY: shared references only read.
unsafe impl Sync for PinnedBuffer {}

impl PinnedBuffer {
    /// Allocates zeroed bytes. Slow (it locks pages), so pools keep them.
    ///
    /// # Errors
    /// [`Error::PinnedMemory`], or what the driver says.
    pub fn new(device: &Arc<Device>, len: usize) -> Result<Self, Error> {
        let _current = device.enter()?;
        let mut pointer: *mut c_void = std::ptr::null_mut();
        // SAFETY: the pointer lives for the call, and the context is current.
        unsafe {
            call!(
                device.driver(),
                cuMemHostAlloc(&raw mut pointer, len.max(1), 0),
                "allocating {len} bytes"
            )
        }
        .map_err(|error| match error {
            Error::DeviceMemory { doing } => Error::PinnedMemory { doing },
            other => other,
        })?;
        let pointer = NonNull::new(pointer.cast::<u8>())
            .ok_or_else(|| Error::PinnedMemory { doing: format!("allocating {len} bytes") })?;
        // SAFETY: the driver allocated that many bytes; as bytes of a slice they must have a value.
        unsafe { pointer.write_bytes(0, len) };
        Ok(Self { device: Arc::clone(device), pointer, len })
    }

    /// The first byte, for those who share the memory.
    pub(crate) fn pointer(&self) -> NonNull<u8> {
        self.pointer
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `self` owns `len` initialised bytes; whoever started a copy into them promised
        // that they are not looked at before it is done.
        unsafe { std::slice::from_raw_parts(self.pointer.as_ptr(), self.len) }
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pointer.as_ptr(), self.len) }
    }
}

impl Drop for PinnedBuffer {
    fn drop(&mut self) {
        if let Ok(_current) = self.device.enter() {
            let pointer = self.pointer.as_ptr().cast();
            // SAFETY: `new` allocated it, and nobody holds it any more.
            let _ =
                unsafe { call!(self.device.driver(), cuMemFreeHost(pointer), "freeing memory") };
        }
    }
}
