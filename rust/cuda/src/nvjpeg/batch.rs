//! Many images decoded by one call: the way to the JPEG engines.

use super::sys::call;
use super::{Handle, NvJpeg};
use crate::Error;
use crate::driver::Stream;
use nvjpeg_sys::{nvjpegImage_t, nvjpegJpegState_t};
use std::ffi::c_int;
use std::sync::Arc;

/// Where an image is written: an address on the device and a pitch in bytes for each component; 0
/// for those that it does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Image {
    /// Addresses of the first rows.
    pub channels: [u64; 4],
    /// Bytes from one row to the next.
    pub pitches: [usize; 4],
}

impl Image {
    pub(super) fn raw(&self) -> nvjpegImage_t {
        // Addresses of a device never become references; nvJPEG wants them as pointers.
        let channel = self.channels.map(|address| address as *mut u8);
        nvjpegImage_t { channel, pitch: self.pitches }
    }
}

/// A decoder of batches and its memory; one thread uses it at a time.
#[derive(Debug)]
pub struct BatchState {
    handle: Arc<Handle>,
    raw: nvjpegJpegState_t,
    batch_size: usize,
}

// SAFETY: it may move between threads; methods that change it want it exclusively.
unsafe impl Send for BatchState {}

impl BatchState {
    /// A state that [`BatchState::initialize`] makes ready.
    ///
    /// # Errors
    /// What nvJPEG says.
    pub fn new(handle: &Arc<Handle>) -> Result<Self, Error> {
        let _current = handle.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the handle lives, and the result lives for the call.
        unsafe {
            call!(
                handle.nvjpeg(),
                nvjpegJpegStateCreate(handle.raw(), &raw mut raw),
                "making a state for batches"
            )
        }?;
        Ok(Self { handle: Arc::clone(handle), raw, batch_size: 0 })
    }

    /// Makes it ready for batches of exactly `batch_size` images, each to its components.
    ///
    /// # Errors
    /// What nvJPEG says.
    pub fn initialize(&mut self, batch_size: usize) -> Result<(), Error> {
        let handle = &self.handle;
        let _current = handle.enter()?;
        self.batch_size = 0;
        let size = count(batch_size)?;
        // Huffman codes are the engines', too: threads have nothing to do.
        let (threads, format) = (1, nvjpeg_sys::nvjpegOutputFormat_t_NVJPEG_OUTPUT_YUV);
        // SAFETY: both handles live: `self` holds them.
        unsafe {
            call!(
                handle.nvjpeg(),
                nvjpegDecodeBatchedInitialize(handle.raw(), self.raw, size, threads, format),
                "preparing batches of {batch_size}"
            )
        }?;
        self.batch_size = batch_size;
        Ok(())
    }

    /// Decodes a batch, in the stream's order.
    ///
    /// # Errors
    /// [`Error::Invalid`] for another number of images than was initialised, or what nvJPEG says,
    /// which is about the whole batch.
    ///
    /// # Safety
    /// - `encoded` is neither freed nor written until the stream has come this far, nor is the
    ///   state initialised or dropped.
    /// - Each destination has room for its image in the format that was initialised, and nobody
    ///   else uses it until then.
    pub unsafe fn decode(
        &mut self,
        encoded: &[&[u8]],
        destinations: &[Image],
        stream: &Stream,
    ) -> Result<(), Error> {
        if encoded.len() != self.batch_size || destinations.len() != self.batch_size {
            let what = format!(
                "{} files and {} destinations for batches of {}",
                encoded.len(),
                destinations.len(),
                self.batch_size
            );
            return Err(Error::Invalid { what });
        }
        let handle = &self.handle;
        let _current = handle.enter()?;
        let data: Vec<*const u8> = encoded.iter().map(|bytes| bytes.as_ptr()).collect();
        let lens: Vec<usize> = encoded.iter().map(|bytes| bytes.len()).collect();
        let mut images: Vec<nvjpegImage_t> = destinations.iter().map(Image::raw).collect();
        // SAFETY: the three lists have `batch_size` items, which the state was initialised for, and
        // are read before the call returns; the caller keeps what they point to.
        unsafe {
            call!(
                handle.nvjpeg(),
                nvjpegDecodeBatched(
                    handle.raw(),
                    self.raw,
                    data.as_ptr(),
                    lens.as_ptr(),
                    images.as_mut_ptr(),
                    stream.raw().cast(),
                ),
                "decoding {} images on {}",
                encoded.len(),
                handle.device()
            )
        }
    }
}

impl Drop for BatchState {
    fn drop(&mut self) {
        destroy_state(&self.handle, self.raw);
    }
}

/// Ends a state that `handle` made and nobody holds any more.
pub(super) fn destroy_state(handle: &Handle, raw: nvjpegJpegState_t) {
    if let Ok(_current) = handle.enter() {
        let nvjpeg: &NvJpeg = handle.nvjpeg();
        // SAFETY: called from the owner's `drop` only.
        let _ = unsafe { call!(nvjpeg, nvjpegJpegStateDestroy(raw), "ending a state") };
    }
}

fn count(number: usize) -> Result<c_int, Error> {
    c_int::try_from(number)
        .map_err(|_| Error::Invalid { what: format!("{number} is too large for nvJPEG") })
}
