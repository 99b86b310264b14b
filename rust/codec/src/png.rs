//! PNG pixels, by the `png` crate: whole images, to RGB as Pillow's `convert("RGB")` or to indices.
//!
//! Invariants: alpha is dropped, not composited; of an APNG the default image is decoded; missing
//! pixel data is an error unless truncated files are accepted.

use crate::Error;
use forebay_core::ports::Stop;
use forebay_core::{ImageMeta, Limits};
use png::{ColorType, DecodingError, Transformations};
use std::io::{BufRead, Cursor, Read, Seek, SeekFrom};

/// Missing pixels of a truncated file (`Limits::accept_truncated`) are grey; where several share a
/// byte they are black, since the `png` crate merges interlaced passes into zeros.
const MISSING: u8 = 128;

/// Which channels come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channels {
    /// Three: colour, alpha dropped.
    Rgb,
    /// One: palette indices, the grey value, or the first colour; for masks.
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

/// All pixels, interleaved.
pub(crate) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    limits: &Limits,
    stop: &Stop,
) -> Result<Vec<u8>, Error> {
    let pixels = usize::try_from(meta.size.pixels())
        .ok()
        .filter(|pixels| pixels.checked_mul(4).is_some())
        .ok_or_else(|| Error::Memory { what: format!("{} pixels", meta.size) })?;
    let mut options = png::DecodeOptions::default();
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    options.set_ignore_adler32(false);
    let mut decoder =
        png::Decoder::new_with_options(Stoppable { bytes: Cursor::new(bytes), stop }, options);
    // The size has passed `Limits::max_pixels`; rows and chunks are small beside the image.
    decoder.set_limits(png::Limits { bytes: (64 << 20) + 8 * pixels });
    decoder.set_transformations(Transformations::IDENTITY);
    let mut reader = decoder.read_info().map_err(|error| convert(&error))?;
    let info = reader.info();
    if (info.width, info.height) != (meta.size.width, meta.size.height) {
        return Err(Error::internal(format!("probed {}, found another size", meta.size)));
    }
    let (colour, depth) = (info.color_type, info.bit_depth as usize);
    let palette = rgb_palette(info.palette.as_deref());
    let width = meta.size.width as usize;
    let line = reader
        .output_line_size(meta.size.width)
        .ok_or_else(|| Error::Memory { what: "a PNG row".to_owned() })?;
    let missing = if depth == 8 { MISSING } else { 0 };
    let rows = line * meta.size.height as usize;
    let mut packed = Error::filled(missing, rows, "a PNG")?;
    match reader.next_frame(&mut packed) {
        Err(error) if !(limits.accept_truncated && is_eof(&error)) => return Err(convert(&error)),
        _ => {}
    }
    let mut out = Error::filled(0, pixels * channels.count(), "a PNG's pixels")?;
    for (packed, out) in
        packed.chunks_exact(line).zip(out.chunks_exact_mut(width * channels.count()))
    {
        let raw = |column: usize| sample(packed, column, depth);
        match (colour, channels) {
            (ColorType::Rgb, Channels::Rgb) => out.copy_from_slice(packed),
            (ColorType::Rgba, Channels::Rgb) => {
                for (out, pixel) in out.chunks_exact_mut(3).zip(packed.chunks_exact(4)) {
                    out.copy_from_slice(&pixel[..3]);
                }
            }
            (ColorType::Indexed, Channels::Rgb) => {
                for (column, out) in out.chunks_exact_mut(3).enumerate() {
                    out.copy_from_slice(&palette[usize::from(raw(column))]);
                }
            }
            (ColorType::Grayscale, Channels::Rgb) => {
                let scale = grey_scale(depth);
                for (column, out) in out.chunks_exact_mut(3).enumerate() {
                    out.fill(raw(column) * scale);
                }
            }
            (ColorType::GrayscaleAlpha, Channels::Rgb) => {
                for (out, pixel) in out.chunks_exact_mut(3).zip(packed.chunks_exact(2)) {
                    out.fill(pixel[0]);
                }
            }
            (ColorType::Indexed | ColorType::Grayscale, Channels::First) => {
                let scale = if colour == ColorType::Grayscale { grey_scale(depth) } else { 1 };
                for (column, out) in out.iter_mut().enumerate() {
                    *out = raw(column) * scale;
                }
            }
            (ColorType::Rgb | ColorType::Rgba | ColorType::GrayscaleAlpha, Channels::First) => {
                let pixels = packed.chunks_exact(colour.samples());
                out.iter_mut().zip(pixels).for_each(|(out, pixel)| *out = pixel[0]);
            }
        }
    }
    Ok(out)
}

/// No reader of memory fails in this way by itself.
const STOPPED: std::io::ErrorKind = std::io::ErrorKind::ConnectionAborted;
/// Compressed bytes between two looks at the stop flag.
const STOP_BYTES: usize = 1 << 14;

/// The file, handed out in pieces while nobody raises the flag (LIF-1).
struct Stoppable<'a> {
    bytes: Cursor<&'a [u8]>,
    stop: &'a Stop,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Stoppable<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.stop.raised() {
            return Err(STOPPED.into());
        }
        let rest = self.bytes.fill_buf()?;
        Ok(&rest[..rest.len().min(STOP_BYTES)])
    }

    fn consume(&mut self, amount: usize) {
        self.bytes.consume(amount);
    }
}

impl Seek for Stoppable<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(to)
    }
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

fn is_eof(error: &DecodingError) -> bool {
    matches!(error, DecodingError::IoError(io) if io.kind() == std::io::ErrorKind::UnexpectedEof)
}

fn convert(error: &DecodingError) -> Error {
    match error {
        DecodingError::IoError(io) if io.kind() == STOPPED => Error::Stopped,
        _ if is_eof(error) => Error::truncated("image data ends early"),
        DecodingError::LimitsExceeded => Error::Memory { what: "PNG chunks".to_owned() },
        DecodingError::IoError(_) | DecodingError::Format(_) => Error::png(error.to_string()),
        DecodingError::Parameter(_) => Error::internal(error.to_string()),
    }
}
