//! Strips and tiles whose compression is not the `tiff` crate's: JPEG by libjpeg, and CCITT fax.
//!
//! Invariant: what is too short for its pixels is refused before these have memory.

use super::fax;
use crate::jpeg::Decompressor;
use crate::{Error, probe};
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Limits, Size};
use std::borrow::Cow;

/// How often a file's bytes and samples may be read when strips overlap or share tables.
pub(super) const READ_AGAIN: usize = 16;

#[derive(Debug)]
pub(super) enum Compression {
    /// Tables are shared by all strips and tiles and stand without start and end of an image.
    Jpeg { tables: Vec<u8>, ycbcr: bool },
    /// CCITT group 4; if `reversed`, bytes begin with their lowest bit.
    Fax { reversed: bool },
}

/// A file's strips and tiles, and what their pixels are made of.
#[derive(Debug)]
pub(super) struct Coded<'a> {
    pub(super) compression: Compression,
    pub(super) chunks: Vec<&'a [u8]>,
    /// Of a pixel of a strip or tile.
    pub(super) components: u8,
    /// The largest sample is black.
    pub(super) inverted: bool,
}

impl<'a> Coded<'a> {
    /// Refuses files whose strips and tiles overlap so that reading them would take too long.
    pub(super) fn check(&self, bytes: &[u8], size: Size) -> Result<(), Error> {
        let tables = match &self.compression {
            Compression::Jpeg { tables, .. } => tables.len(),
            Compression::Fax { .. } => 0,
        };
        let read = self.chunks.iter().fold(0, |sum: usize, chunk| sum + chunk.len() + tables);
        let samples = usize::try_from(size.pixels()).unwrap_or(usize::MAX).saturating_mul(4);
        if read / READ_AGAIN > bytes.len().saturating_add(samples) {
            let what = format!("strips of {read} bytes in a file of {}", bytes.len());
            return Err(Error::damaged(Format::Tiff, what));
        }
        Ok(())
    }

    /// Refuses a strip or tile that is too short or not of the size of `tile`, or at the end of the
    /// image at least as high as `data`.
    pub(super) fn probe(
        &self,
        index: u32,
        tile: Size,
        data: Size,
        limits: &Limits,
        stop: &Stop,
    ) -> Result<(), Error> {
        if stop.raised() {
            return Err(Error::Stopped);
        }
        let chunk = self.chunks[index as usize];
        match &self.compression {
            Compression::Jpeg { tables, .. } => {
                let found = self.jpeg(tables, chunk, limits)?.1.size;
                if found.width != tile.width || !(data.height..=tile.height).contains(&found.height)
                {
                    let what = format!("strip of {tile} pixels holds a JPEG of {found}");
                    return Err(Error::damaged(Format::Tiff, what));
                }
                Ok(())
            }
            // A row is a code at least, of a bit at least.
            Compression::Fax { .. } if 8 * (chunk.len() as u64) < u64::from(data.height) => {
                let what = format!("{} bytes of data for {tile} pixels", chunk.len());
                Err(Error::truncated(what))
            }
            Compression::Fax { .. } => Ok(()),
        }
    }

    /// A strip's or tile's JPEG with the tables that it needs, and what its markers declare.
    fn jpeg(
        &self,
        tables: &[u8],
        chunk: &'a [u8],
        limits: &Limits,
    ) -> Result<(Cow<'a, [u8]>, ImageMeta), Error> {
        let damaged = |what| Err(Error::damaged(Format::Tiff, what));
        let Some(body) = chunk.strip_prefix(b"\xff\xd8") else {
            return damaged("a strip that should be JPEG has no start of image".to_owned());
        };
        let whole = if tables.is_empty() {
            Cow::Borrowed(chunk)
        } else {
            Cow::Owned([b"\xff\xd8", tables, body].concat())
        };
        let limits = Limits { accept_truncated: false, ..*limits };
        let meta = probe(&whole, &limits)?;
        if meta.components != self.components {
            let (found, components) = (meta.components, self.components);
            return damaged(format!("JPEG of {found} components, expected {components}"));
        }
        Ok((whole, meta))
    }

    /// The samples of a strip or tile that `data` keeps of it, and warnings about damage.
    pub(super) fn samples(
        &self,
        index: u32,
        tile: Size,
        data: Size,
        limits: &Limits,
        stop: &Stop,
    ) -> Result<(Vec<u8>, u32), Error> {
        let chunk = self.chunks[index as usize];
        let (mut samples, warnings) = match &self.compression {
            Compression::Jpeg { tables, ycbcr } => {
                let (whole, meta) = self.jpeg(tables, chunk, limits)?;
                let components = self.components;
                Decompressor::new()?.samples(&whole, meta.size, components, *ycbcr, stop)?
            }
            Compression::Fax { reversed } => {
                let size = Size { width: tile.width, height: data.height };
                (fax::decode(chunk, size, *reversed, stop)?, 0)
            }
        };
        let most = if matches!(self.compression, Compression::Fax { .. }) { 1 } else { u8::MAX };
        if self.inverted {
            for sample in &mut samples {
                *sample = most - *sample;
            }
        }
        crop(&mut samples, tile.width, data, self.components);
        Ok((samples, warnings))
    }
}

/// Keeps the upper left `data` of rows of `width` pixels.
fn crop(samples: &mut Vec<u8>, width: u32, data: Size, components: u8) {
    let samples_of = |pixels: u32| usize::from(components) * pixels as usize;
    let (stride, line) = (samples_of(width), samples_of(data.width));
    if line < stride {
        for row in 1..data.height as usize {
            samples.copy_within(row * stride..row * stride + line, row * line);
        }
    }
    samples.truncate(line * data.height as usize);
}
