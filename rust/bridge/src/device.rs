//! A device as a pipeline's place: torch's memory, codec's and cuda's decoders, cuda's renderer.

use crate::ffi::{self, TensorOut};
use crate::guard::Error;
use crate::options::{DecoderOptions, DeviceOptions, Use};
use crate::tensors;
use cxx::UniquePtr;
use forebay_codec::{CpuBackend, PixelDecoder};
use forebay_core::ports::{Decoder, DeviceMemory, HostMemory, Renderer};
use forebay_core::{DType, ErrorKind, FieldSpec, HasKind};
use forebay_cuda::{Backend, Lent};
use forebay_engine::Shares;
use forebay_slab::{Allocator, Block, Pageable};
use std::ffi::c_void;
use std::sync::Arc;

/// A device that a pipeline delivers to.
pub(crate) struct Device {
    backend: Backend,
    torch: Torch,
    renderer: Arc<dyn Renderer>,
    decoders: Vec<Arc<dyn Decoder>>,
    /// What is missing, and what is done instead.
    notes: Vec<String>,
}

/// torch's allocator; called on the consumer's thread, or wherever memory is given back.
pub(crate) struct Torch(UniquePtr<ffi::DeviceAllocator>);

// SAFETY: torch's caching allocator takes calls from any thread, and `DeviceAllocator` keeps no
// state of its own.
unsafe impl Send for Torch {}
// SAFETY: as above.
unsafe impl Sync for Torch {}

/// torch's tensor, on its way through the renderer.
pub(crate) struct Tensor(UniquePtr<ffi::DeviceTensor>);

// SAFETY: a tensor may be used and dropped on any thread, by one at a time.
unsafe impl Send for Tensor {}

impl std::fmt::Debug for Tensor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Tensor({:#x})", self.0.as_ref().map_or(0, ffi::DeviceTensor::address))
    }
}

impl Tensor {
    /// The tensor itself.
    pub(crate) fn into_inner(self) -> UniquePtr<ffi::DeviceTensor> {
        self.0
    }
}

/// Why torch's memory cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TorchError {
    /// What torch said when it refused.
    #[error("{0}")]
    Refused(String),
    #[error("torch has no more memory on the device")]
    Full,
    #[error(transparent)]
    Device(#[from] forebay_cuda::Error),
}

impl HasKind for TorchError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused(_) => ErrorKind::Device,
            Self::Full => ErrorKind::DeviceMemory,
            Self::Device(error) => error.kind(),
        }
    }
}

impl Torch {
    pub(crate) fn new(allocator: UniquePtr<ffi::DeviceAllocator>) -> Self {
        Self(allocator)
    }

    /// The number of its device.
    pub(crate) fn index(&self) -> u32 {
        self.0.index()
    }

    /// The calling thread's current stream.
    fn stream(&self) -> Result<*mut c_void, TorchError> {
        let refused = |error: cxx::Exception| TorchError::Refused(error.what().to_owned());
        let stream = self.0.current_stream().map_err(refused)?;
        Ok(std::ptr::with_exposed_provenance_mut(usize::try_from(stream).unwrap_or(0)))
    }

    /// Refuses to let `call` take part in a capture: what it gives is not the same every time.
    pub(crate) fn check_capture(
        &self,
        backend: &Backend,
        call: &str,
        advice: &str,
    ) -> Result<(), Error> {
        let raw = self.stream()?;
        // SAFETY: torch's current stream lives while it is current.
        if unsafe { backend.stream(raw) }.is_capturing()? {
            let what = format!("{call} inside a CUDA graph's capture; {advice}");
            return Err(Error::new(ErrorKind::Device, what));
        }
        Ok(())
    }

    /// A tensor of torch's for the calling thread's current stream, lent to the renderer.
    pub(crate) fn lend(
        &self,
        backend: &Backend,
        dtype: DType,
        sizes: &[usize],
        strides: &[usize],
    ) -> Result<Lent, TorchError> {
        let bytes = sizes.iter().product::<usize>() * dtype.size();
        let (sizes, strides) = (tensors::signed(sizes), tensors::signed(strides));
        let allocate = || self.0.allocate(dtype.into(), &sizes, &strides);
        let mut tensor = allocate();
        if tensor.is_null() && backend.release_scratch() {
            tensor = allocate();
        }
        if tensor.is_null() {
            return Err(TorchError::Full);
        }
        let stream = self.stream()?;
        let address = tensor.address();
        // SAFETY: the tensor keeps its memory, which nobody else has, and was allocated on this
        // thread's current stream, which lives while it is current.
        Ok(unsafe { backend.lend(address, bytes, Box::new(Tensor(tensor)), stream) }?)
    }

    /// Gives a tensor to the calling thread's current stream; true if it was allocated for another
    /// one, which torch must be told (`record_stream`).
    pub(crate) fn hand_out(
        &self,
        backend: &Backend,
        lent: &Lent,
    ) -> Result<(TensorOut, bool), Error> {
        let raw = self.stream()?;
        // SAFETY: as above.
        let stream = unsafe { backend.stream(raw) };
        let tensor = lent.hand_out(&stream)?.downcast::<Tensor>();
        let tensor = tensor.map_err(|_| Error::new(ErrorKind::Internal, "a tensor of no torch"))?;
        Ok((tensors::from_device(*tensor), !lent.is_of(&stream)))
    }
}

impl Device {
    /// Opens the device and everything on it that decodes.
    pub(crate) fn open(
        options: &DeviceOptions,
        allocator: UniquePtr<ffi::DeviceAllocator>,
        cpu: &Arc<CpuBackend>,
    ) -> Result<Self, Error> {
        let backend = Backend::open(options.into())?;
        let pixels =
            PixelDecoder::new(Arc::clone(cpu), backend.host_memory()).leaving_coefficients();
        let pixels: Arc<dyn Decoder> = Arc::new(pixels);
        let mut decoders = vec![Arc::clone(&pixels)];
        let mut notes = Vec::new();
        if options.decoders.cuda != Use::Never {
            decoders.push(Arc::new(backend.cores(Arc::clone(&pixels))?));
        }
        if options.decoders.hardware != Use::Never {
            match backend.hardware(pixels) {
                Ok(hardware) => decoders.push(Arc::new(hardware)),
                Err(error) => notes.push(format!("{error}; the CPU decodes")),
            }
        }
        let renderer = backend.renderer();
        let torch = Torch::new(allocator);
        Ok(Self { backend, torch, renderer, decoders, notes })
    }

    pub(crate) fn decoders(&self) -> Vec<Arc<dyn Decoder>> {
        self.decoders.clone()
    }

    /// The shares that the options ask for.
    pub(crate) fn shares(&self, options: DecoderOptions) -> Option<Shares> {
        let mut shares = Shares::default();
        let mut any = false;
        for (part, decoder) in shares.parts.iter_mut().zip(&self.decoders) {
            if let Use::Share(share) = options.of(decoder.name()) {
                (*part, any) = (share, true);
            }
        }
        any.then_some(shares)
    }

    /// Where files had best be read to: page-locked memory if engines read them.
    pub(crate) fn file_memory(&self) -> Option<Arc<dyn HostMemory>> {
        let engines = self.decoders.iter().any(|decoder| decoder.engines().is_some());
        engines.then(|| self.backend.host_memory())
    }

    pub(crate) fn renderer(&self) -> Arc<dyn Renderer> {
        Arc::clone(&self.renderer)
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Refuses to take part in a capture: a batch is not the same every time.
    pub(crate) fn check_capture(&self) -> Result<(), Error> {
        let advice = "take the batch before it and copy it into static inputs";
        self.torch.check_capture(&self.backend, "next()", advice)
    }

    /// Gives a field to the consumer's stream; true if it was allocated for another one, which torch
    /// must be told (`record_stream`).
    pub(crate) fn hand_out(
        &self,
        memory: &Arc<dyn DeviceMemory>,
    ) -> Result<(TensorOut, bool), Error> {
        let lent = memory.as_any().downcast_ref::<Lent>();
        let lent = lent.ok_or_else(|| Error::new(ErrorKind::Internal, "memory of no device"))?;
        self.torch.hand_out(&self.backend, lent)
    }
}

/// Fields on the device from torch, all others from the pool of host memory.
pub(crate) struct DeviceSlabs {
    pub(crate) device: Arc<Device>,
    pub(crate) host: Pageable,
}

impl Allocator for DeviceSlabs {
    fn allocate(&self, bytes: usize) -> Result<Block, forebay_slab::Error> {
        self.host.allocate(bytes)
    }

    fn allocate_on_device(
        &self,
        spec: &FieldSpec,
        samples: usize,
    ) -> Result<Arc<dyn DeviceMemory>, forebay_slab::Error> {
        let (sizes, strides) = forebay_slab::shape_and_strides(spec, samples);
        let bytes = sizes.iter().product::<usize>() * spec.dtype.size();
        let Device { torch, backend, .. } = &*self.device;
        let lent = torch.lend(backend, spec.dtype, &sizes, &strides);
        let lent = lent.map_err(|error| {
            let (kind, reason) = (error.kind(), error.to_string());
            forebay_slab::Error::Allocator { kind, bytes, reason }
        })?;
        Ok(Arc::new(lent))
    }

    fn eager(&self) -> bool {
        self.host.eager()
    }
}
