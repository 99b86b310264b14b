//! One image in three phases: on the host, across the bus, on the device.
//!
//! Two states with their own scratch memory let one image's host phase run beside another's device
//! phase.

use super::Handle;
use super::batch::{Image, destroy_state};
use super::bitstream::Bitstream;
use super::handle::{Backend, OutputFormat};
use super::sys::call;
use crate::Error;
use crate::driver::Stream;
use nvjpeg_sys::{
    nvjpegBufferDevice_t, nvjpegBufferPinned_t, nvjpegDecodeParams_t, nvjpegJpegDecoder_t,
    nvjpegJpegState_t,
};
use std::sync::Arc;

/// Declares an object that a handle makes and ends.
macro_rules! object {
    ($(#[$meta:meta])* $vis:vis $name:ident, $raw:ty, $destroy:ident) => {
        $(#[$meta])*
        #[derive(Debug)]
        $vis struct $name {
            handle: Arc<Handle>,
            raw: $raw,
        }

        // SAFETY: it may move between threads; methods that change it want it exclusively.
        unsafe impl Send for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                if let Ok(_current) = self.handle.enter() {
                    // SAFETY: `new` created it, and nobody holds it any more.
                    let _ = unsafe {
                        call!(self.handle.nvjpeg(), $destroy(self.raw), "ending an object")
                    };
                }
            }
        }
    };
}

object!(
    /// What is wanted of an image: the output's format.
    pub Parameters,
    nvjpegDecodeParams_t,
    nvjpegDecodeParamsDestroy
);
object!(
    /// An implementation of the phases.
    pub Decoder,
    nvjpegJpegDecoder_t,
    nvjpegDecoderDestroy
);
object!(
    /// Page-locked memory between host and bus; grows as images need it.
    PinnedScratch,
    nvjpegBufferPinned_t,
    nvjpegBufferPinnedDestroy
);
object!(
    /// The device's memory between the phases; grows as images need it.
    DeviceScratch,
    nvjpegBufferDevice_t,
    nvjpegBufferDeviceDestroy
);

impl Parameters {
    pub(super) fn raw(&self) -> nvjpegDecodeParams_t {
        self.raw
    }

    /// Parameters for a format.
    ///
    /// # Errors
    /// What nvJPEG says.
    pub fn new(handle: &Arc<Handle>, format: OutputFormat) -> Result<Self, Error> {
        let _current = handle.enter()?;
        let nvjpeg = handle.nvjpeg();
        let mut raw = std::ptr::null_mut();
        // SAFETY: the handle lives, and the result lives for the call.
        unsafe {
            call!(nvjpeg, nvjpegDecodeParamsCreate(handle.raw(), &raw mut raw), "making parameters")
        }?;
        let parameters = Self { handle: Arc::clone(handle), raw };
        // SAFETY: `parameters` owns what was just made.
        unsafe {
            call!(
                nvjpeg,
                nvjpegDecodeParamsSetOutputFormat(raw, format.raw()),
                "asking for {format:?}"
            )
        }?;
        Ok(parameters)
    }
}

impl Decoder {
    pub(super) fn raw(&self) -> nvjpegJpegDecoder_t {
        self.raw
    }

    /// A decoder of a backend.
    ///
    /// # Errors
    /// Where the device has no such backend.
    pub fn new(handle: &Arc<Handle>, backend: Backend) -> Result<Self, Error> {
        let _current = handle.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the handle lives, and the result lives for the call.
        unsafe {
            call!(
                handle.nvjpeg(),
                nvjpegDecoderCreate(handle.raw(), backend.raw(), &raw mut raw),
                "making a {backend:?} decoder"
            )
        }?;
        Ok(Self { handle: Arc::clone(handle), raw })
    }
}

impl PinnedScratch {
    fn new(handle: &Arc<Handle>) -> Result<Self, Error> {
        let _current = handle.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the handle lives, and the result lives for the call; null stands for nvJPEG's own
        // allocator.
        unsafe {
            call!(
                handle.nvjpeg(),
                nvjpegBufferPinnedCreate(handle.raw(), std::ptr::null_mut(), &raw mut raw),
                "making pinned scratch memory"
            )
        }?;
        Ok(Self { handle: Arc::clone(handle), raw })
    }
}

impl DeviceScratch {
    fn new(handle: &Arc<Handle>) -> Result<Self, Error> {
        let _current = handle.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the handle lives, and the result lives for the call; null stands for nvJPEG's own
        // allocator.
        unsafe {
            call!(
                handle.nvjpeg(),
                nvjpegBufferDeviceCreate(handle.raw(), std::ptr::null_mut(), &raw mut raw),
                "making device scratch memory"
            )
        }?;
        Ok(Self { handle: Arc::clone(handle), raw })
    }
}

/// One image on its way through a decoder's phases, and scratch memory; one thread uses it at a
/// time.
#[derive(Debug)]
pub struct DecoderState {
    raw: nvjpegJpegState_t,
    // `drop` ends the state before these, which it is attached to, are dropped.
    pinned: PinnedScratch,
    device: DeviceScratch,
    decoder: Decoder,
}

// SAFETY: it may move between threads; methods that change it want it exclusively.
unsafe impl Send for DecoderState {}

impl DecoderState {
    /// A state, with scratch memory of its own.
    ///
    /// # Errors
    /// What nvJPEG says.
    pub fn new(decoder: Decoder) -> Result<Self, Error> {
        let handle = Arc::clone(&decoder.handle);
        let _current = handle.enter()?;
        let nvjpeg = handle.nvjpeg();
        let (pinned, device) = (PinnedScratch::new(&handle)?, DeviceScratch::new(&handle)?);
        let mut raw = std::ptr::null_mut();
        // SAFETY: handle and decoder live, and the result lives for the call.
        unsafe {
            call!(
                nvjpeg,
                nvjpegDecoderStateCreate(handle.raw(), decoder.raw, &raw mut raw),
                "making a state"
            )
        }?;
        let state = Self { raw, pinned, device, decoder };
        // SAFETY: `state` owns all three, and ends the state before the memory.
        unsafe {
            call!(
                nvjpeg,
                nvjpegStateAttachPinnedBuffer(raw, state.pinned.raw),
                "attaching pinned scratch memory"
            )?;
            call!(
                nvjpeg,
                nvjpegStateAttachDeviceBuffer(raw, state.device.raw),
                "attaching device scratch memory"
            )?;
        }
        Ok(state)
    }

    /// Its decoder.
    pub fn decoder(&self) -> &Decoder {
        &self.decoder
    }

    /// First phase: Huffman decoding on this thread, into pinned scratch memory.
    ///
    /// # Errors
    /// What nvJPEG says of the data.
    ///
    /// # Safety
    /// - The transfer of the image before, if there was one, is done.
    pub unsafe fn decode_on_host(
        &mut self,
        bitstream: &Bitstream,
        parameters: &Parameters,
    ) -> Result<(), Error> {
        let handle = &self.decoder.handle;
        let _current = handle.enter()?;
        // SAFETY: all handles live, their owners are borrowed; nobody reads the scratch memory, as
        // the caller says.
        unsafe {
            call!(
                handle.nvjpeg(),
                nvjpegDecodeJpegHost(
                    handle.raw(),
                    self.decoder.raw,
                    self.raw,
                    parameters.raw,
                    bitstream.raw()
                ),
                "decoding on the host"
            )
        }
    }

    /// Second phase: to the device, in the stream's order.
    ///
    /// # Errors
    /// What nvJPEG says.
    ///
    /// # Safety
    /// - The first phase is done for this bitstream.
    /// - Bitstream and state are neither changed nor dropped until the stream has come this far.
    pub unsafe fn transfer(&mut self, bitstream: &Bitstream, stream: &Stream) -> Result<(), Error> {
        let handle = &self.decoder.handle;
        let _current = handle.enter()?;
        // SAFETY: all handles live, their owners are borrowed; the caller keeps them until the copy is
        // done.
        unsafe {
            call!(
                handle.nvjpeg(),
                nvjpegDecodeJpegTransferToDevice(
                    handle.raw(),
                    self.decoder.raw,
                    self.raw,
                    bitstream.raw(),
                    stream.raw().cast()
                ),
                "copying to {}",
                handle.device()
            )
        }
    }

    /// Third phase: pixels, in the stream's order.
    ///
    /// # Errors
    /// What nvJPEG says.
    ///
    /// # Safety
    /// - The second phase was submitted to the same stream.
    /// - The destination has room for the image in the parameters' format, nobody else uses it,
    ///   and the state is neither changed nor dropped, until the stream has come this far.
    pub unsafe fn decode_on_device(
        &mut self,
        destination: &Image,
        stream: &Stream,
    ) -> Result<(), Error> {
        let handle = &self.decoder.handle;
        let _current = handle.enter()?;
        let mut image = destination.raw();
        // SAFETY: all handles live, their owners are borrowed; the image's description is read before
        // the call returns, and the caller keeps what it points to.
        unsafe {
            call!(
                handle.nvjpeg(),
                nvjpegDecodeJpegDevice(
                    handle.raw(),
                    self.decoder.raw,
                    self.raw,
                    &raw mut image,
                    stream.raw().cast()
                ),
                "decoding on {}",
                handle.device()
            )
        }
    }
}

impl Drop for DecoderState {
    fn drop(&mut self) {
        destroy_state(&self.decoder.handle, self.raw);
    }
}
