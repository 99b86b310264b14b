//! Formats that are decoded whole, each by the crate that is kept for it, to RGB as Pillow's
//! `convert("RGB")` gives it.
//!
//! Invariants: alpha is dropped, not composited; of several images in a file the first is decoded;
//! a file that ends early is an error; a crate's panic is the file's fault, not the pipeline's.

pub(crate) mod bmp;
pub(crate) mod gif;
mod png;
mod reader;
pub(crate) mod tiff;
mod webp;

use crate::Error;
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Limits};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Which channels come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channels {
    /// Three: colour, alpha dropped.
    Rgb,
    /// One: palette indices, the grey value, or the first colour; for masks, which are PNGs.
    First,
}

impl Channels {
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Rgb => 3,
            Self::First => 1,
        }
    }
}

/// All pixels, interleaved, and the number of warnings about missing ones that were accepted.
pub(crate) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    limits: &Limits,
    stop: &Stop,
) -> Result<(Vec<u8>, u32), Error> {
    let format = meta.format;
    if channels == Channels::First && format != Format::Png {
        return Err(Error::unsupported(format!("{} as a mask", format.name())));
    }
    guarded(format, || {
        let pixels = match format {
            Format::Png => return png::decode(bytes, meta, channels, limits, stop),
            Format::WebP => webp::decode(bytes, meta, stop)?,
            Format::Bmp => bmp::decode(bytes, meta, stop)?,
            Format::Tiff => return tiff::decode(bytes, meta, channels, limits, stop),
            Format::Gif => gif::decode(bytes, meta, stop)?,
            Format::Jpeg => return Err(Error::internal("JPEG is decoded by region")),
        };
        Ok((pixels, 0))
    })
}

/// All pixels as a file stores them, interleaved.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) channels: u8,
    /// 16 bits a sample, in the machine's byte order; else 8.
    pub(crate) wide: bool,
    pub(crate) pixels: Vec<u8>,
}

/// A PNG as it is stored, a palette's indices among it, or as RGB with alpha.
pub(crate) fn png_stored(
    bytes: &[u8],
    meta: &ImageMeta,
    with_alpha: bool,
    limits: &Limits,
    stop: &Stop,
) -> Result<Stored, Error> {
    guarded(Format::Png, || png::stored(bytes, meta, with_alpha, limits, stop))
}

/// The indices of a TIFF whose pixels are numbers of a palette.
pub(crate) fn tiff_indices(
    bytes: &[u8],
    meta: &ImageMeta,
    limits: &Limits,
    stop: &Stop,
) -> Result<Stored, Error> {
    let decode = || tiff::decode(bytes, meta, Channels::First, limits, stop);
    let (pixels, _) = guarded(Format::Tiff, decode)?;
    Ok(Stored { channels: 1, wide: false, pixels })
}

/// Whether a GIF's, BMP's or TIFF's pixels are numbers of a palette.
pub(crate) fn has_palette(bytes: &[u8], format: Format) -> Result<bool, Error> {
    let stop = Stop::default();
    guarded(format, || match format {
        Format::Bmp => Ok(bmp::open(bytes, &stop)?.get_palette().is_some()),
        Format::Tiff => Ok(tiff::open(bytes, &stop)?.indexed()),
        _ => Ok(format == Format::Gif),
    })
}

/// Whether a TIFF's first page has 16 bits a sample.
pub(crate) fn is_wide_tiff(bytes: &[u8]) -> Result<bool, Error> {
    guarded(Format::Tiff, || Ok(tiff::open(bytes, &Stop::default())?.depth > 8))
}

/// Runs a crate's decoder on a file that may be hostile. Nothing of it outlives a panic.
pub(crate) fn guarded<T>(
    format: Format,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(Error::damaged(format, "the decoder gave up")))
}

/// An error of reading the file, in our words.
fn read_error(format: Format, error: &std::io::Error) -> Error {
    match error.kind() {
        reader::STOPPED => Error::Stopped,
        std::io::ErrorKind::UnexpectedEof => Error::truncated("image data ends early"),
        _ => Error::damaged(format, error.to_string()),
    }
}

/// `pixels * per_pixel` zeros.
fn zeros(meta: &ImageMeta, per_pixel: usize) -> Result<Vec<u8>, Error> {
    let what = || Error::Memory { what: format!("{} pixels", meta.size) };
    let pixels = usize::try_from(meta.size.pixels()).map_err(|_| what())?;
    let count = pixels.checked_mul(per_pixel).ok_or_else(what)?;
    Error::filled(0, count, meta.format.name())
}

/// Drops the fourth channel in place.
fn drop_alpha(pixels: &mut Vec<u8>) {
    let count = pixels.len() / 4;
    for pixel in 1..count {
        pixels.copy_within(4 * pixel..4 * pixel + 3, 3 * pixel);
    }
    pixels.truncate(3 * count);
}

/// Sample `column` of a row of `depth` bits each, most significant bits first.
fn sample(packed: &[u8], column: usize, depth: usize) -> u8 {
    if depth == 8 {
        return packed[column];
    }
    let bit = column * depth;
    let shift = 8 - depth - bit % 8;
    (packed[bit / 8] >> shift) & ((1 << depth) - 1)
}

/// What the largest grey value of `depth` bits is multiplied by to give 255.
fn grey_scale(depth: usize) -> u8 {
    match depth {
        1 => 255,
        2 => 85,
        4 => 17,
        _ => 1,
    }
}

/// All 256 entries; those that the file leaves out are black.
fn rgb_palette(stored: Option<&[u8]>) -> [[u8; 3]; 256] {
    let mut palette = [[0; 3]; 256];
    for (entry, stored) in palette.iter_mut().zip(stored.unwrap_or_default().chunks_exact(3)) {
        entry.copy_from_slice(stored);
    }
    palette
}
