//! What a thread has current: a device's context, and its mode towards stream captures.

use super::sys::call;
use super::{Device, Driver};
use crate::Error;
use cudarc::driver::sys::CUstreamCaptureMode;
use std::marker::PhantomData;

/// A device's primary context, current on this thread until this is dropped. Meanwhile calls of
/// this thread break no stream capture of another one.
///
/// torch captures graphs in CUDA's global mode, in which an allocation on any thread whose own
/// mode is not relaxed ends the capture with an error.
///
/// Guards nest and are dropped in the opposite order, as scopes do by themselves.
#[derive(Debug)]
#[must_use = "the context is current only while this lives"]
pub struct Current<'d> {
    device: &'d Device,
    /// The thread's mode before.
    mode: CUstreamCaptureMode,
    /// What is current belongs to a thread.
    not_send: PhantomData<*const ()>,
}

impl<'d> Current<'d> {
    pub(super) fn push(device: &'d Device) -> Result<Self, Error> {
        let (driver, context) = (device.driver(), device.context());
        // SAFETY: the context is retained for as long as `device` lives.
        unsafe { call!(driver, cuCtxPushCurrent_v2(context), "entering {device}") }?;
        let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        match exchange(driver, relaxed) {
            Ok(mode) => Ok(Self { device, mode, not_send: PhantomData }),
            Err(error) => {
                pop(driver);
                Err(error)
            }
        }
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        let driver = self.device.driver();
        let _ = exchange(driver, self.mode);
        pop(driver);
    }
}

fn pop(driver: &Driver) {
    let mut popped = std::ptr::null_mut();
    // SAFETY: `push` put an entry on this thread's stack, and guards do not leave the thread.
    let _ = unsafe { call!(driver, cuCtxPopCurrent_v2(&raw mut popped), "leaving a device") };
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
