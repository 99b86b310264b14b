//! Devices of the stateless ops: opened when a call first names them, shared by all calls of the
//! process, and never closed.
//!
//! **Invariants**
//! - LIF-1: a forked child is told before it takes a lock of its parent's.
//! - LIF-2: nothing is loaded, and no device touched, before a call names it.

use crate::fork;
use crate::guard::Error;
use forebay_codec::{CpuBackend, PixelDecoder};
use forebay_core::ports::{Decoder, HostMemory};
use forebay_core::{ErrorKind, Limits};
use forebay_cuda::find::Places;
use forebay_cuda::{Backend, CudaRenderer, HardwareDecoder, Options};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A device in use by the ops.
pub(crate) struct SharedDevice {
    pub(crate) backend: Backend,
    pub(crate) renderer: Arc<CudaRenderer>,
    /// Page-locked, for what threads decode.
    pub(crate) memory: Arc<dyn HostMemory>,
    /// The JPEG engines; `None` without nvJPEG.
    pub(crate) hardware: Option<HardwareDecoder>,
}

impl SharedDevice {
    fn open(ordinal: u32) -> Result<Self, Error> {
        let unknown = || Error::new(ErrorKind::Internal, "an op before cuda_places");
        let (places, kernels) = PLACES.get().cloned().ok_or_else(unknown)?;
        let backend = Backend::open(Options { places, kernels, ..Options::new(ordinal) })?;
        let memory = backend.host_memory();
        let cpu = CpuBackend::new(Limits::default());
        let fallback: Arc<dyn Decoder> = Arc::new(PixelDecoder::new(cpu, Arc::clone(&memory)));
        let hardware = backend.hardware(fallback).ok();
        let renderer = backend.renderer();
        Ok(Self { backend, renderer, memory, hardware })
    }
}

/// Where CUDA may lie, and where compiled kernels are kept.
static PLACES: OnceLock<(Places, PathBuf)> = OnceLock::new();

/// Says where CUDA may lie. The first word counts: devices may be open already.
pub(crate) fn set_places(places: Places, kernels: PathBuf) {
    let _ = PLACES.set((places, kernels));
}

struct Opened {
    forks: u64,
    devices: Mutex<HashMap<u32, Arc<SharedDevice>>>,
}

/// A static is not dropped: at the process's end the driver is gone before its objects would be.
static OPENED: OnceLock<Opened> = OnceLock::new();

/// The device, opened if it was not yet; others wait meanwhile.
pub(crate) fn shared(ordinal: u32) -> Result<Arc<SharedDevice>, Error> {
    let opened =
        OPENED.get_or_init(|| Opened { forks: fork::generation(), devices: Mutex::default() });
    if opened.forks != fork::generation() {
        let what = "CUDA was used before this process was forked, and cannot be used in it; start \
                    processes with the \"spawn\" method";
        return Err(Error::new(ErrorKind::Device, what));
    }
    let mut devices = opened.devices.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = devices.get(&ordinal) {
        return Ok(Arc::clone(device));
    }
    let device = Arc::new(SharedDevice::open(ordinal)?);
    devices.insert(ordinal, Arc::clone(&device));
    Ok(device)
}
