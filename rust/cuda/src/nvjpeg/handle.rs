//! A handle: nvJPEG on one device, with a backend.

use super::NvJpeg;
use super::sys::call;
use crate::Error;
use crate::driver::{Current, Device};
use nvjpeg_sys::{nvjpegBackend_t, nvjpegHandle_t};
use std::sync::Arc;

/// What decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// nvJPEG chooses; opens on every device.
    Default,
    /// The JPEG engines of A100, H100 and later; baseline only.
    Hardware,
}

impl Backend {
    fn raw(self) -> nvjpegBackend_t {
        match self {
            Self::Default => nvjpeg_sys::nvjpegBackend_t_NVJPEG_BACKEND_DEFAULT,
            Self::Hardware => nvjpeg_sys::nvjpegBackend_t_NVJPEG_BACKEND_HARDWARE,
        }
    }
}

/// JPEG engines of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Engines {
    /// How many; 0 on devices without.
    pub count: u32,
    /// Images that each decodes at once.
    pub cores_per_engine: u32,
}

/// nvJPEG on one device. Calls on what it makes may come from several threads, each with a state
/// of its own.
#[derive(Debug)]
pub struct Handle {
    nvjpeg: &'static NvJpeg,
    device: Arc<Device>,
    raw: nvjpegHandle_t,
}

// SAFETY: nvJPEG's documentation calls handles thread-safe.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    /// Makes a handle. nvJPEG allocates by itself, and keeps what it has.
    ///
    /// # Errors
    /// [`super::Status::ArchMismatch`] and the like where the device has no such backend.
    pub fn new(
        nvjpeg: &'static NvJpeg,
        device: &Arc<Device>,
        backend: Backend,
    ) -> Result<Arc<Self>, Error> {
        let _current = device.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the handle lives for the call; null stands for nvJPEG's own allocators.
        unsafe {
            call!(
                nvjpeg,
                nvjpegCreateEx(
                    backend.raw(),
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    nvjpeg_sys::NVJPEG_FLAGS_DEFAULT,
                    &raw mut raw,
                ),
                "opening its {backend:?} backend on {device}"
            )
        }?;
        Ok(Arc::new(Self { nvjpeg, device: Arc::clone(device), raw }))
    }

    /// The device that it decodes on.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    pub(super) fn raw(&self) -> nvjpegHandle_t {
        self.raw
    }

    pub(super) fn nvjpeg(&self) -> &'static NvJpeg {
        self.nvjpeg
    }

    /// As every call of nvJPEG wants it.
    pub(super) fn enter(&self) -> Result<Current<'_>, Error> {
        self.device.enter()
    }

    /// The device's JPEG engines; None where this nvJPEG cannot tell.
    ///
    /// # Errors
    /// What nvJPEG says.
    pub fn engines(&self) -> Result<Option<Engines>, Error> {
        let Some(info) = self.nvjpeg.functions.nvjpegGetHardwareDecoderInfo else {
            return Ok(None);
        };
        let _current = self.enter()?;
        let mut engines = Engines { count: 0, cores_per_engine: 0 };
        // SAFETY: the handle lives while `self` does, both numbers for the call.
        let status =
            unsafe { info(self.raw, &raw mut engines.count, &raw mut engines.cores_per_engine) };
        NvJpeg::check(
            "nvjpegGetHardwareDecoderInfo",
            status,
            format_args!("counting JPEG engines of {}", self.device),
        )?;
        Ok(Some(engines))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Ok(_current) = self.enter() {
            // SAFETY: `new` created it, and everything made inside it held it.
            let _ = unsafe { call!(self.nvjpeg, nvjpegDestroy(self.raw), "closing a handle") };
        }
    }
}
