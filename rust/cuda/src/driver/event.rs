//! Events: points in a stream's work that others wait for.

use super::sys::call;
use super::{Device, Stream};
use crate::Error;
use cudarc::driver::sys::{CUevent, CUevent_flags, CUresult};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How [`Event::synchronize`] waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// On the core: quicker by some microseconds.
    Spin,
    /// Asleep: leaves the core to decoders.
    Block,
}

/// An event without a time stamp, which makes it cheaper.
#[derive(Debug)]
pub struct Event {
    device: Arc<Device>,
    handle: CUevent,
    /// Known to have come; the driver, which has one lock for all threads, need not be asked again.
    come: AtomicBool,
}

// SAFETY: the driver takes calls on an event from any thread, several at once.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that is not yet recorded, and so counts as done.
    ///
    /// # Errors
    /// What the driver says.
    pub fn new(device: &Arc<Device>, wait: Wait) -> Result<Self, Error> {
        let _current = device.enter()?;
        let mut flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        if wait == Wait::Block {
            flags |= CUevent_flags::CU_EVENT_BLOCKING_SYNC as u32;
        }
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle lives for the call, and the context is current.
        unsafe {
            call!(
                device.driver(),
                cuEventCreate(&raw mut handle, flags),
                "creating an event on {device}"
            )
        }?;
        Ok(Self { device: Arc::clone(device), handle, come: AtomicBool::new(false) })
    }

    pub(super) fn handle(&self) -> CUevent {
        self.handle
    }

    /// Stands from here on for all that was submitted to the stream so far. Nobody asks or waits
    /// meanwhile.
    ///
    /// # Errors
    /// What the driver says, as for a stream of another device.
    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        let device = &self.device;
        self.come.store(false, Ordering::Release);
        let _current = device.enter()?;
        // SAFETY: both handles live, their owners are borrowed.
        unsafe {
            call!(
                device.driver(),
                cuEventRecord(self.handle, stream.handle()),
                "recording an event on {device}"
            )
        }
    }

    /// Whether all that it stands for is done.
    ///
    /// # Errors
    /// What the driver says, which may be the failure of a kernel submitted earlier.
    pub fn query(&self) -> Result<bool, Error> {
        if self.come.load(Ordering::Acquire) {
            return Ok(true);
        }
        let device = &self.device;
        let _current = device.enter()?;
        let driver = device.driver();
        // SAFETY: the handle lives while `self` does.
        let code = unsafe { (driver.functions.cuEventQuery)(self.handle) };
        if code == CUresult::CUDA_ERROR_NOT_READY as u32 {
            return Ok(false);
        }
        driver.check("cuEventQuery", code, format_args!("asking an event of {device}"))?;
        self.come.store(true, Ordering::Release);
        Ok(true)
    }

    /// Waits until all that it stands for is done.
    ///
    /// # Errors
    /// As [`Event::query`].
    pub fn synchronize(&self) -> Result<(), Error> {
        if self.come.load(Ordering::Acquire) {
            return Ok(());
        }
        let device = &self.device;
        let _current = device.enter()?;
        // SAFETY: the handle lives while `self` does.
        unsafe {
            call!(
                device.driver(),
                cuEventSynchronize(self.handle),
                "waiting for an event of {device}"
            )
        }?;
        self.come.store(true, Ordering::Release);
        Ok(())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.device.enter() {
            // SAFETY: `new` created it, and nobody holds it any more; streams that wait for it go on
            // doing so.
            let _ = unsafe {
                call!(self.device.driver(), cuEventDestroy_v2(self.handle), "ending an event")
            };
        }
    }
}
