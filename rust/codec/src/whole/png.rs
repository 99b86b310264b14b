//! PNG pixels, by the `png` crate: to RGB as Pillow's `convert("RGB")`, or to indices.
//!
//! Invariants: of 16 bits the high byte is taken, for grey too, where Pillow clips all above 255 to
//! white; of an APNG the default image is decoded; missing pixel data is an error unless truncated
//! files are accepted.

use super::reader::{STOPPED, Stoppable};
use super::{Channels, Stored, grey_scale, rgb_palette, sample};
use crate::Error;
use forebay_core::ports::Stop;
use forebay_core::{ImageMeta, Limits};
use png::{ColorType, DecodingError, Transformations};

/// Missing pixels of a truncated file (`Limits::accept_truncated`) are grey; where several share a
/// byte they are black, since the `png` crate merges interlaced passes into zeros.
const MISSING: u8 = 128;

/// Rows as the crate gives them, and what they are made of.
struct Rows {
    packed: Vec<u8>,
    /// Bytes of a row.
    line: usize,
    colour: ColorType,
    depth: usize,
    palette: [[u8; 3]; 256],
    /// The file ended early, which was accepted.
    truncated: bool,
}

fn read(
    bytes: &[u8],
    meta: &ImageMeta,
    transformations: Transformations,
    limits: &Limits,
    stop: &Stop,
) -> Result<Rows, Error> {
    let pixels = usize::try_from(meta.size.pixels())
        .ok()
        .filter(|pixels| pixels.checked_mul(4).is_some())
        .ok_or_else(|| Error::Memory { what: format!("{} pixels", meta.size) })?;
    let mut options = png::DecodeOptions::default();
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    options.set_ignore_adler32(false);
    let mut decoder = png::Decoder::new_with_options(Stoppable::new(bytes, stop), options);
    // The size has passed `Limits::max_pixels`; rows and chunks are small beside the image.
    decoder.set_limits(png::Limits { bytes: (64 << 20) + 8 * pixels });
    decoder.set_transformations(transformations);
    let mut reader = decoder.read_info().map_err(|error| convert(&error))?;
    let info = reader.info();
    if (info.width, info.height) != (meta.size.width, meta.size.height) {
        return Err(Error::internal(format!("probed {}, found another size", meta.size)));
    }
    let palette = rgb_palette(info.palette.as_deref());
    let (colour, depth) = reader.output_color_type();
    let depth = depth as usize;
    let line = reader
        .output_line_size(meta.size.width)
        .ok_or_else(|| Error::Memory { what: "a PNG row".to_owned() })?;
    let missing = if depth >= 8 { MISSING } else { 0 };
    let rows = line * meta.size.height as usize;
    let mut packed = Error::filled(missing, rows, "a PNG")?;
    let truncated = match reader.next_frame(&mut packed) {
        Ok(_) => false,
        Err(error) if limits.accept_truncated && is_eof(&error) => true,
        Err(error) => return Err(convert(&error)),
    };
    Ok(Rows { packed, line, colour, depth, palette, truncated })
}

/// As stored, or as RGB with alpha.
pub(super) fn stored(
    bytes: &[u8],
    meta: &ImageMeta,
    with_alpha: bool,
    limits: &Limits,
    stop: &Stop,
) -> Result<Stored, Error> {
    let transformations = if with_alpha {
        Transformations::STRIP_16 | Transformations::EXPAND | Transformations::ALPHA
    } else {
        Transformations::IDENTITY
    };
    let Rows { mut packed, line, colour, depth, .. } =
        read(bytes, meta, transformations, limits, stop)?;
    let samples = colour.samples();
    let channels = u8::try_from(samples).expect("at most 4");
    if with_alpha && samples == 2 {
        let mut pixels = Error::filled(0, 2 * packed.len(), "a PNG's pixels")?;
        let pairs = packed.as_chunks::<2>().0;
        for (out, &[grey, alpha]) in pixels.as_chunks_mut::<4>().0.iter_mut().zip(pairs) {
            *out = [grey, grey, grey, alpha];
        }
        return Ok(Stored { channels: 4, wide: false, pixels });
    }
    if depth == 16 {
        for sample in packed.as_chunks_mut::<2>().0 {
            *sample = u16::from_be_bytes(*sample).to_ne_bytes();
        }
    } else if depth < 8 {
        let width = meta.size.width as usize;
        let scale = if colour == ColorType::Indexed { 1 } else { grey_scale(depth) };
        let mut pixels = Error::filled(0, width * meta.size.height as usize, "a PNG's pixels")?;
        for (packed, out) in packed.chunks_exact(line).zip(pixels.chunks_exact_mut(width)) {
            for (column, out) in out.iter_mut().enumerate() {
                *out = sample(packed, column, depth) * scale;
            }
        }
        packed = pixels;
    }
    Ok(Stored { channels, wide: depth == 16, pixels: packed })
}

/// All pixels, interleaved, and a warning if some are missing.
pub(super) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    limits: &Limits,
    stop: &Stop,
) -> Result<(Vec<u8>, u32), Error> {
    let Rows { packed, line, colour, depth, palette, truncated } =
        read(bytes, meta, Transformations::STRIP_16, limits, stop)?;
    let width = meta.size.width as usize;
    let pixels = width * meta.size.height as usize;
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
    Ok((out, truncated.into()))
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
