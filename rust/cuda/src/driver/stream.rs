//! Streams: work in order on a device.

use super::sys::call;
use super::{Device, Event};
use crate::Error;
use cudarc::driver::sys::{CUstream, CUstream_flags, CUstreamCaptureStatus};
use std::ffi::c_void;
use std::sync::Arc;

/// A stream of ours, or one that torch lends.
#[derive(Debug)]
pub struct Stream {
    device: Arc<Device>,
    handle: CUstream,
    owned: bool,
}

// SAFETY: the driver takes calls on a stream from any thread, several at once.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream that does not wait for the legacy default stream, nor that for it.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(device: &Arc<Device>) -> Result<Self, Error> {
        let _current = device.enter()?;
        let mut handle = std::ptr::null_mut();
        let flags = CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: the handle lives for the call, and the context is current.
        unsafe {
            call!(
                device.driver(),
                cuStreamCreate(&raw mut handle, flags),
                "creating a stream on {device}"
            )
        }?;
        Ok(Self { device: Arc::clone(device), handle, owned: true })
    }

    /// A stream that somebody else owns, torch's current one; null is the legacy default stream.
    ///
    /// # Safety
    /// - `raw` is a `CUstream` of the primary context of `device`, and outlives the result.
    pub unsafe fn borrow(device: &Arc<Device>, raw: *mut c_void) -> Self {
        Self { device: Arc::clone(device), handle: raw.cast(), owned: false }
    }

    /// Where its work runs.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The handle, for other libraries of CUDA; valid while this lives.
    pub fn raw(&self) -> *mut c_void {
        self.handle.cast()
    }

    pub(super) fn handle(&self) -> CUstream {
        self.handle
    }

    /// What is submitted from here on runs after what the event has recorded. Does not block.
    ///
    /// # Errors
    /// What the driver says.
    pub fn wait(&self, event: &Event) -> Result<(), Error> {
        let device = &self.device;
        let _current = device.enter()?;
        // SAFETY: both handles live, their owners are borrowed.
        unsafe {
            call!(
                device.driver(),
                cuStreamWaitEvent(self.handle, event.handle(), 0),
                "letting a stream of {device} wait"
            )
        }
    }

    /// Waits until all that was submitted is done.
    ///
    /// # Errors
    /// What the driver says, which may be the failure of a kernel submitted earlier.
    pub fn synchronize(&self) -> Result<(), Error> {
        let device = &self.device;
        let _current = device.enter()?;
        // SAFETY: the handle lives while `self` does.
        unsafe {
            call!(
                device.driver(),
                cuStreamSynchronize(self.handle),
                "waiting for a stream of {device}"
            )
        }
    }

    /// Whether a graph is being captured from it, which no batch may become part of.
    ///
    /// # Errors
    /// What the driver says.
    pub fn is_capturing(&self) -> Result<bool, Error> {
        let device = &self.device;
        let _current = device.enter()?;
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the status lives for the call; the driver writes one of its three values.
        unsafe {
            call!(
                device.driver(),
                cuStreamIsCapturing(self.handle, &raw mut status),
                "asking a stream of {device} for its capture"
            )
        }?;
        Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.owned {
            return;
        }
        if let Ok(_current) = self.device.enter() {
            // SAFETY: `new` created it, and nobody holds it any more; the driver lets work that was
            // submitted finish.
            let _ = unsafe {
                call!(self.device.driver(), cuStreamDestroy_v2(self.handle), "ending a stream")
            };
        }
    }
}
