//! Formats that are decoded whole, each by the crate that is kept for it: to what Pillow's
//! `convert("RGB")` and `convert("RGBA")` give, or as stored.
//!
//! Invariants: for RGB alpha is dropped, not composited; of several images in a file the first is
//! decoded; a file that ends early is an error; a crate's panic is the file's fault, not the
//! pipeline's.

pub(crate) mod bmp;
pub(crate) mod gif;
mod png;
pub(crate) mod pnm;
mod reader;
pub(crate) mod tiff;
mod webp;

use crate::pixel::luma;
use crate::{Error, Level};
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Limits, Size};
use image::ImageError;
use image::error::UnsupportedErrorKind;
use std::error::Error as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Which channels come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channels {
    /// Three: colour, alpha dropped.
    Rgb,
    /// Four, or three where the file has no alpha.
    RgbAlpha,
    /// What the file has: a palette's indices, grey or colour, alpha behind it, 8 or 16 bits.
    Stored,
    /// One: palette indices, the grey value, or the first colour; for masks, which are PNGs.
    First,
}

/// All pixels, interleaved.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) channels: u8,
    /// 16 bits a sample, in the machine's byte order; else 8.
    pub(crate) wide: bool,
    pub(crate) pixels: Vec<u8>,
}

impl Stored {
    /// RGB as grey.
    pub(crate) fn gray(self) -> Self {
        let mut pixels = self.pixels;
        let count = pixels.len() / 3;
        luma::shrink(Level::best(), &mut pixels, count);
        pixels.truncate(count);
        Self::bytes(1, pixels)
    }

    pub(crate) fn bytes(channels: u8, pixels: Vec<u8>) -> Self {
        Self { channels, wide: false, pixels }
    }

    /// Colour with an alpha of 255 behind it.
    pub(crate) fn opaque(rgb: &[u8]) -> Result<Self, Error> {
        let mut pixels = Error::filled(u8::MAX, rgb.len() / 3 * 4, "an image")?;
        for (with, without) in pixels.as_chunks_mut::<4>().0.iter_mut().zip(rgb.as_chunks::<3>().0)
        {
            with[..3].copy_from_slice(without);
        }
        Ok(Self::bytes(4, pixels))
    }
}

/// All pixels, and the number of warnings about missing ones that were accepted.
pub(crate) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    limits: &Limits,
    stop: &Stop,
) -> Result<(Stored, u32), Error> {
    let format = meta.format;
    if channels == Channels::First && format != Format::Png {
        return Err(Error::unsupported(format!("{} as a mask", format.name())));
    }
    guarded(format, || {
        let stored = match format {
            Format::Png => return png::decode(bytes, meta, channels, limits, stop),
            Format::Tiff => return tiff::decode(bytes, meta, channels, limits, stop),
            Format::WebP => webp::decode(bytes, meta, channels, stop)?,
            Format::Bmp => bmp::decode(bytes, meta, channels, stop)?,
            Format::Gif => gif::decode(bytes, meta, channels, stop)?,
            Format::Pnm => pnm::decode(bytes, meta, channels, stop)?,
            Format::Jpeg => return Err(Error::internal("JPEG is decoded by region")),
        };
        Ok((stored, 0))
    })
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

/// An error of the `image` crate, in our words.
fn image_error(format: Format, error: &ImageError) -> Error {
    let name = format.name();
    match error {
        ImageError::IoError(error) => read_error(format, error),
        ImageError::Unsupported(unsupported) => Error::unsupported(match unsupported.kind() {
            UnsupportedErrorKind::GenericFeature(what) => format!("{name} with {what}"),
            _ => format!("{name}: {unsupported}"),
        }),
        ImageError::Limits(_) => Error::Memory { what: format!("a {name}") },
        // The text of the crate's own error, without the format's name again.
        _ => Error::damaged(
            format,
            error.source().map_or_else(|| error.to_string(), ToString::to_string),
        ),
    }
}

/// The probe has read the same header.
fn check_size(meta: &ImageMeta, found: Size) -> Result<(), Error> {
    if found == meta.size {
        return Ok(());
    }
    Err(Error::internal(format!("probed {}, found {found}", meta.size)))
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

/// The colours of a palette's indices, which are all below its length.
fn painted(indices: &[u8], palette: &[[u8; 3]]) -> Result<Vec<u8>, Error> {
    let mut pixels = Error::filled(0, 3 * indices.len(), "an image")?;
    for (pixel, &index) in pixels.as_chunks_mut::<3>().0.iter_mut().zip(indices) {
        *pixel = palette[usize::from(index)];
    }
    Ok(pixels)
}
