//! What a thread has current: a device's context, and its mode towards stream captures.

use super::sys::call;
use super::{Device, Driver};
use crate::Error;
use cudarc::driver::sys::{CUcontext, CUstreamCaptureMode};
use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    /// The context of the innermost guard on this thread.
    static ENTERED: Cell<CUcontext> = const { Cell::new(std::ptr::null_mut()) };
}

/// A device's primary context, current on this thread until this is dropped. Meanwhile calls of
/// this thread break no stream capture of another one.
///
/// torch captures graphs in CUDA's global mode, in which an allocation on any thread whose own
/// mode is not relaxed ends the capture with an error.
///
/// Guards nest and are dropped in the opposite order, as scopes do by themselves. One within another
/// of the same device takes no call of the driver.
#[derive(Debug)]
#[must_use = "the context is current only while this lives"]
pub struct Current<'d> {
    device: &'d Device,
    /// The context that was entered before, and the thread's mode then; None within a guard of the
    /// same device.
    before: Option<(CUcontext, CUstreamCaptureMode)>,
    /// What is current belongs to a thread.
    not_send: PhantomData<*const ()>,
}

impl<'d> Current<'d> {
    pub(super) fn push(device: &'d Device) -> Result<Self, Error> {
        let (driver, context) = (device.driver(), device.context());
        if ENTERED.get() == context {
            return Ok(Self { device, before: None, not_send: PhantomData });
        }
        // SAFETY: the context is retained for as long as `device` lives.
        unsafe { call!(driver, cuCtxPushCurrent_v2(context), "entering {device}") }?;
        let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        match exchange(driver, relaxed) {
            Ok(mode) => {
                let before = Some((ENTERED.replace(context), mode));
                Ok(Self { device, before, not_send: PhantomData })
            }
            Err(error) => {
                pop(driver);
                Err(error)
            }
        }
    }
}

impl Drop for Current<'_> {
    fn drop(&mut self) {
        if let Some((context, mode)) = self.before {
            ENTERED.set(context);
            let driver = self.device.driver();
            let _ = exchange(driver, mode);
            pop(driver);
        }
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
