//! One device, opened for one pipeline: streams, kernels and pools, and what is built on them.

use crate::Error;
use crate::cache::{Cache, Key, Origin};
use crate::decoder::CudaDecoder;
use crate::driver::{Device, DeviceBuffer, Driver, Module, PinnedBuffer, Stream};
use crate::find::Places;
use crate::hardware::HardwareDecoder;
use crate::kernels::Kernels;
use crate::lent::{Lent, Retired};
use crate::nvjpeg::NvJpeg;
use crate::nvrtc::{Nvrtc, Program, Source};
use crate::pack::{self, COMPILE_OPTIONS, SOURCES};
use crate::pixels::{ForeignPixels, PinnedMemory};
use crate::pool::Pool;
use crate::renderer::CudaRenderer;
use forebay_core::ports::{Decoder, HostMemory, Pixels};
use std::any::Any;
use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::Arc;

/// What a backend is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The device, as torch counts.
    pub ordinal: u32,
    /// Where libraries may lie.
    pub places: Places,
    /// Where compiled kernels are kept; empty: nowhere.
    pub kernels: PathBuf,
    /// Bytes of scratch on the device that are kept for later.
    pub device_scratch: usize,
    /// Bytes of page-locked memory that are kept for later.
    pub pinned: usize,
}

impl Options {
    /// `cuda:ordinal`, keeping 1.25 GiB of scratch on the device (three batches of 256 photos of half
    /// a megapixel) and 512 MiB of page-locked memory.
    pub fn new(ordinal: u32) -> Self {
        Self {
            ordinal,
            places: Places::default(),
            kernels: PathBuf::new(),
            device_scratch: 1280 << 20,
            pinned: 512 << 20,
        }
    }
}

/// A device in use.
#[derive(Debug)]
pub struct Backend {
    device: Arc<Device>,
    render: Arc<Stream>,
    kernels: Arc<Kernels>,
    renderer: Arc<CudaRenderer>,
    scratch: Arc<Pool<DeviceBuffer>>,
    pinned: Arc<Pool<PinnedBuffer>>,
    retired: Arc<Retired>,
    places: Places,
}

impl Backend {
    /// Opens the device's primary context and loads the kernels, compiling them if nobody has.
    ///
    /// # Errors
    /// A part is missing, or the device fails.
    pub fn open(options: Options) -> Result<Self, Error> {
        let driver = Driver::load(&options.places)?;
        let device = Device::open(driver, options.ordinal)?;
        let kernels = Arc::new(Kernels::new(&compiled(&device, &options)?)?);
        let render = Arc::new(Stream::new(&device)?);
        let scratch = Pool::new(&device, options.device_scratch);
        let pinned = Pool::new(&device, options.pinned);
        let renderer = CudaRenderer::new(&kernels, &render, &scratch, &pinned)?;
        Ok(Self {
            device,
            render,
            kernels,
            renderer: Arc::new(renderer),
            scratch,
            pinned,
            retired: Arc::default(),
            places: options.places,
        })
    }

    /// Renders into memory that was lent.
    pub fn renderer(&self) -> Arc<CudaRenderer> {
        Arc::clone(&self.renderer)
    }

    /// Page-locked memory, for decoders on the host and for files that engines read.
    pub fn host_memory(&self) -> Arc<dyn HostMemory> {
        Arc::new(PinnedMemory::new(&self.pinned))
    }

    /// The device's JPEG engines, if it has any. What they refuse, `fallback` decodes.
    ///
    /// # Errors
    /// nvJPEG is missing.
    pub fn hardware(&self, fallback: Arc<dyn Decoder>) -> Result<HardwareDecoder, Error> {
        let nvjpeg = NvJpeg::load(&self.places)?;
        Ok(HardwareDecoder::new(nvjpeg, &self.device, &self.scratch, fallback))
    }

    /// The device's cores. What they leave, `fallback` decodes.
    ///
    /// # Errors
    /// The device fails.
    pub fn cores(&self, fallback: Arc<dyn Decoder>) -> Result<CudaDecoder, Error> {
        CudaDecoder::new(&self.kernels, &self.device, &self.scratch, &self.pinned, fallback)
    }

    /// Gives memory that nothing uses at the moment back to the device. False if there is none.
    pub fn release_scratch(&self) -> bool {
        self.scratch.release()
    }

    /// Takes a batch's field into use, `bytes` bytes at `address` that `owner` keeps.
    ///
    /// # Errors
    /// The driver refuses.
    ///
    /// # Safety
    /// - `owner` keeps the memory valid, on this device, and nobody else writes it.
    /// - `stream` is the stream of the device on which it was allocated, and lives during the call.
    pub unsafe fn lend(
        &self,
        address: u64,
        bytes: usize,
        owner: Box<dyn Any + Send>,
        stream: *mut c_void,
    ) -> Result<Lent, Error> {
        // SAFETY: the caller's second promise.
        let stream = unsafe { Stream::borrow(&self.device, stream) };
        Lent::new(address, bytes, owner, &stream, &self.render, &self.retired)
    }

    /// Pixels that lie on this device already, for a render job. They are read after all work that
    /// the slot's allocating stream had then ([`Backend::lend`]), and before whoever the slot is
    /// handed out to goes on ([`Lent::hand_out`]).
    ///
    /// # Safety
    /// - Between these two points the samples of `source` are valid, and nobody writes them.
    pub unsafe fn pixels(&self, source: pack::Source) -> Pixels {
        Pixels::Device(Box::new(ForeignPixels(source)))
    }

    /// The consumer's current stream.
    ///
    /// # Safety
    /// - `raw` is a stream of this device, and outlives the result.
    pub unsafe fn stream(&self, raw: *mut c_void) -> Stream {
        // SAFETY: the caller's promise.
        unsafe { Stream::borrow(&self.device, raw) }
    }
}

fn compiled(device: &Arc<Device>, options: &Options) -> Result<Arc<Module>, Error> {
    let nvrtc = Nvrtc::load(&options.places)?;
    let architecture = nvrtc.architecture(device.compute_capability()?)?;
    let sources: Vec<Source<'_>> =
        SOURCES.iter().map(|&(name, text)| Source { name, text }).collect();
    let (source, headers) = sources.split_first().expect("the kernels are one file and headers");
    let program = Program { source: *source, headers, options: COMPILE_OPTIONS };
    let key = Key::new(&program, &architecture, nvrtc.found().version);
    let cache = Cache::new(&options.kernels);
    let compile = || nvrtc.compile(&program, &architecture);
    let (cubin, origin) = cache.get_or_compile(&key, compile)?;
    let loaded = Module::load(device, &cubin);
    if loaded.is_ok() || !matches!(origin, Origin::Cache) {
        return loaded;
    }
    // What was kept is what somebody wrote, but no kernel.
    let cubin = compile()?;
    cache.keep(&key, &cubin);
    Module::load(device, &cubin)
}
