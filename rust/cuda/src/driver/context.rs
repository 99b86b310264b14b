//! What a thread has current: a device's context, and its mode towards stream captures.

use super::sys::call;
use super::{Device, Driver};
use crate::Error;
use cudarc::driver::sys::CUstreamCaptureMode;
use std::marker::PhantomData;

/// A device's primary context, current on this thread until this is dropped.
///
/// Guards nest and are dropped in the opposite order, as scopes do by themselves.
#[derive(Debug)]
#[must_use = "the context is current only while this lives"]
pub struct Current<'d> {
    device: &'d Device,
    /// What is current belongs to a thread.
    not_send: PhantomData<*const ()>,
}

impl<'d> Current<'d> {
    pub(super) fn push(device: &'d Device) -> Result<Self, Error> {
        let context = device.context();
        // SAFETY: the context is retained for as long as `device` lives.
        unsafe { call!(device.driver(), cuCtxPushCurrent_v2(context), "entering {device}") }?;
        Ok(Self { device, not_send: PhantomData })
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let mut popped = std::ptr::null_mut();
        // SAFETY: `push` put an entry on this thread's stack, and guards do not leave the thread.
        let _ = unsafe {
            call!(self.device.driver(), cuCtxPopCurrent_v2(&raw mut popped), "leaving a device")
        };
    }
}

/// While this lives, calls of this thread break no stream capture of another thread.
///
/// torch captures graphs in CUDA's global mode, in which an allocation on any thread whose own
/// mode is not relaxed ends the capture with an error. Threads of ours hold one of these.
#[derive(Debug)]
#[must_use = "the mode holds only while this lives"]
pub struct RelaxedCapture {
    driver: &'static Driver,
    before: CUstreamCaptureMode,
    not_send: PhantomData<*const ()>,
}

impl RelaxedCapture {
    /// Sets the mode of this thread.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn enter(device: &Device) -> Result<Self, Error> {
        let driver = device.driver();
        let before = exchange(driver, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED)?;
        Ok(Self { driver, before, not_send: PhantomData })
    }
}

impl Drop for RelaxedCapture {
    fn drop(&mut self) {
        let _ = exchange(self.driver, self.before);
    }
}

/// Sets this thread's mode and returns the one before.
fn exchange(driver: &Driver, mut mode: CUstreamCaptureMode) -> Result<CUstreamCaptureMode, Error> {
    // SAFETY: the mode lives for the call; the driver writes one of its three modes into it.
    unsafe {
        call!(
            driver,
            cuThreadExchangeStreamCaptureMode(&raw mut mode),
            "setting the mode of stream captures"
        )
    }?;
    Ok(mode)
}
