//! One parsed JPEG file.

use super::decoupled::Parameters;
use super::sys::call;
use super::{Decoder, Handle};
use crate::Error;
use nvjpeg_sys::nvjpegJpegStream_t;
use std::sync::Arc;

/// How much is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parse {
    /// The header: enough to ask who can decode it.
    Header,
    /// All, keeping a copy of the data: it need not outlive the call.
    Copy,
}

/// A parser and what it last parsed; one thread uses it at a time.
#[derive(Debug)]
pub struct Bitstream {
    handle: Arc<Handle>,
    raw: nvjpegJpegStream_t,
}

// SAFETY: it may move between threads; methods that change it want it exclusively.
unsafe impl Send for Bitstream {}

impl Bitstream {
    /// A parser that has parsed nothing.
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
                nvjpegJpegStreamCreate(handle.raw(), &raw mut raw),
                "making a parser"
            )
        }?;
        Ok(Self { handle: Arc::clone(handle), raw })
    }

    /// Parses a file, on the host.
    ///
    /// # Errors
    /// What nvJPEG says of the data.
    pub fn parse(&mut self, encoded: &[u8], parse: Parse) -> Result<(), Error> {
        let handle = &self.handle;
        let _current = handle.enter()?;
        let (data, len) = (encoded.as_ptr(), encoded.len());
        // SAFETY: the data live for the call, and nvJPEG keeps no pointer to them: of a header
        // nothing but numbers, of the whole file a copy (save_stream is 1).
        unsafe {
            match parse {
                Parse::Header => call!(
                    handle.nvjpeg(),
                    nvjpegJpegStreamParseHeader(handle.raw(), data, len, self.raw),
                    "parsing a header of {len} bytes"
                ),
                Parse::Copy => call!(
                    handle.nvjpeg(),
                    nvjpegJpegStreamParse(handle.raw(), data, len, 0, 1, self.raw),
                    "parsing {len} bytes"
                ),
            }
        }
    }

    pub(super) fn raw(&self) -> nvjpegJpegStream_t {
        self.raw
    }

    /// Whether the handle's backend decodes it in batches; with parameters: into their format.
    ///
    /// # Errors
    /// What nvJPEG says.
    pub fn batch_supported(&self, parameters: Option<&Parameters>) -> Result<bool, Error> {
        let handle = &self.handle;
        let _current = handle.enter()?;
        let mut unsupported = -1;
        let answer = &raw mut unsupported;
        // SAFETY: all handles live, their owners are borrowed; the answer lives for the call.
        unsafe {
            match parameters {
                None => call!(
                    handle.nvjpeg(),
                    nvjpegDecodeBatchedSupported(handle.raw(), self.raw, answer),
                    "asking whether a batch may hold a file"
                ),
                Some(parameters) => call!(
                    handle.nvjpeg(),
                    nvjpegDecodeBatchedSupportedEx(
                        handle.raw(),
                        self.raw,
                        parameters.raw(),
                        answer
                    ),
                    "asking whether a batch may hold a file"
                ),
            }
        }?;
        // By nvJPEG's contract 0 says yes.
        Ok(unsupported == 0)
    }

    /// Whether a decoder decodes it with these parameters.
    ///
    /// # Errors
    /// What nvJPEG says.
    pub fn supported(&self, decoder: &Decoder, parameters: &Parameters) -> Result<bool, Error> {
        let _current = self.handle.enter()?;
        let mut unsupported = -1;
        // SAFETY: all handles live, their owners are borrowed; the answer lives for the call.
        unsafe {
            call!(
                self.handle.nvjpeg(),
                nvjpegDecoderJpegSupported(
                    decoder.raw(),
                    self.raw,
                    parameters.raw(),
                    &raw mut unsupported
                ),
                "asking whether a decoder takes a file"
            )
        }?;
        Ok(unsupported == 0)
    }
}

impl Drop for Bitstream {
    fn drop(&mut self) {
        if let Ok(_current) = self.handle.enter() {
            // SAFETY: `new` created it, and nobody holds it any more.
            let _ = unsafe {
                call!(self.handle.nvjpeg(), nvjpegJpegStreamDestroy(self.raw), "ending a parser")
            };
        }
    }
}
