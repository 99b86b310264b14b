//! Memory that each thread keeps between images.

use super::pass::PassBuffers;
use crate::Error;
use crate::jpeg::Decompressor;
use crate::pixel::write::Writer;
use forebay_core::Write;
use std::cell::RefCell;

/// Scratch beyond this is freed after the image that needed it, so that one huge image does not
/// stay in every thread's memory. A band and a ring for a 4000 pixel wide image take 0.2 MiB each.
const KEPT_BYTES: usize = 8 << 20;
/// Writers kept: an image and a mask field, twice.
const KEPT_WRITERS: usize = 4;

/// One thread's memory.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) decoder: DecoderScratch,
    pub(super) passes: PassBuffers,
    pub(super) writers: Writers,
}

impl Scratch {
    /// Frees buffers that an unusually large image needed.
    pub(super) fn trim(&mut self) {
        if self.decoder.band.capacity() > KEPT_BYTES {
            self.decoder.band = Vec::new();
        }
        if self.passes.held() > KEPT_BYTES {
            self.passes = PassBuffers::default();
        }
    }
}

/// What decoding JPEG needs.
#[derive(Debug, Default)]
pub(super) struct DecoderScratch {
    jpeg: Option<Decompressor>,
    pub(super) band: Vec<u8>,
}

impl Scratch {
    /// For whoever wants no rows.
    pub(crate) fn decompressor(&mut self) -> Result<&mut Decompressor, Error> {
        Ok(self.decoder.jpeg()?.0)
    }
}

impl DecoderScratch {
    /// The decompressor and the band that it decodes into.
    pub(super) fn jpeg(&mut self) -> Result<(&mut Decompressor, &mut Vec<u8>), Error> {
        if self.jpeg.is_none() {
            self.jpeg = Some(Decompressor::new()?);
        }
        let jpeg = self.jpeg.as_mut().expect("made above");
        Ok((jpeg, &mut self.band))
    }
}

/// Writers by what they write, the last used first.
#[derive(Debug, Default)]
pub(super) struct Writers(Vec<Writer>);

impl Writers {
    pub(super) fn get(&mut self, write: &Write) -> Result<&Writer, Error> {
        if let Some(found) = self.0.iter().position(|writer| writer.write() == write) {
            self.0[..=found].rotate_right(1);
        } else {
            let writer = Writer::new(write).ok_or_else(|| {
                Error::internal(format!("{:?} is no element type of an image", write.dtype))
            })?;
            self.0.truncate(KEPT_WRITERS - 1);
            self.0.insert(0, writer);
        }
        Ok(&self.0[0])
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Lends this thread's memory; nested use gets memory of its own.
pub(crate) fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> T) -> T {
    SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
        Ok(mut scratch) => work(&mut scratch),
        Err(_) => work(&mut Scratch::default()),
    })
}
