//! PNG pixels, by the `png` crate: as Pillow's `convert("RGB")` or `convert("RGBA")`, or as stored.
//!
//! Invariants: of 16 bits the high byte is taken, for grey too, where Pillow clips all above 255 to
//! white; of an APNG the default image is decoded; missing pixel data is an error unless truncated
//! files are accepted.

use super::reader::{STOPPED, Stoppable};
use super::{Channels, Stored, check_size, grey_scale, rgb_palette, sample, zeros};
use crate::Error;
use forebay_core::ports::Stop;
use forebay_core::{ImageMeta, Limits, Size};
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
    channels: Channels,
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
    decoder.set_transformations(match channels {
        Channels::Rgb | Channels::First => Transformations::STRIP_16,
        Channels::RgbAlpha => {
            Transformations::STRIP_16 | Transformations::EXPAND | Transformations::ALPHA
        }
        Channels::Stored => Transformations::IDENTITY,
    });
    let mut reader = decoder.read_info().map_err(|error| convert(&error))?;
    let info = reader.info();
    check_size(meta, Size { width: info.width, height: info.height })?;
    let indexed = info.color_type == ColorType::Indexed;
    if indexed && info.palette.is_none() && channels == Channels::Rgb {
        return Err(Error::png("Missing palette of indexed image."));
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

/// All pixels, and a warning if some are missing.
pub(super) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    limits: &Limits,
    stop: &Stop,
) -> Result<(Stored, u32), Error> {
    let rows = read(bytes, meta, channels, limits, stop)?;
    let warnings = rows.truncated.into();
    let stored = match channels {
        Channels::Rgb => Stored::bytes(3, rgb(&rows, meta)?),
        Channels::First => Stored::bytes(1, first(&rows, meta)?),
        Channels::RgbAlpha if rows.colour == ColorType::GrayscaleAlpha => {
            let mut pixels = Error::filled(0, 2 * rows.packed.len(), "a PNG's pixels")?;
            let pairs = rows.packed.as_chunks::<2>().0;
            for (out, &[grey, alpha]) in pixels.as_chunks_mut::<4>().0.iter_mut().zip(pairs) {
                *out = [grey, grey, grey, alpha];
            }
            Stored::bytes(4, pixels)
        }
        Channels::RgbAlpha => Stored::bytes(4, rows.packed),
        Channels::Stored if rows.depth < 8 => Stored::bytes(1, first(&rows, meta)?),
        Channels::Stored => {
            let Rows { mut packed, colour, depth, .. } = rows;
            let wide = depth == 16;
            if wide {
                for sample in packed.as_chunks_mut::<2>().0 {
                    *sample = u16::from_be_bytes(*sample).to_ne_bytes();
                }
            }
            let channels = u8::try_from(colour.samples()).expect("at most 4");
            Stored { channels, wide, pixels: packed }
        }
    };
    Ok((stored, warnings))
}

/// Colour without alpha.
fn rgb(rows: &Rows, meta: &ImageMeta) -> Result<Vec<u8>, Error> {
    let mut out = zeros(meta, 3)?;
    let lines = out.chunks_exact_mut(3 * meta.size.width as usize);
    for (out, packed) in lines.zip(rows.packed.chunks_exact(rows.line)) {
        let raw = |column: usize| sample(packed, column, rows.depth);
        let pixels = out.chunks_exact_mut(3);
        match rows.colour {
            ColorType::Rgb => out.copy_from_slice(packed),
            ColorType::Rgba => {
                for (out, pixel) in pixels.zip(packed.chunks_exact(4)) {
                    out.copy_from_slice(&pixel[..3]);
                }
            }
            ColorType::Indexed => {
                for (column, out) in pixels.enumerate() {
                    out.copy_from_slice(&rows.palette[usize::from(raw(column))]);
                }
            }
            ColorType::Grayscale => {
                let scale = grey_scale(rows.depth);
                for (column, out) in pixels.enumerate() {
                    out.fill(raw(column) * scale);
                }
            }
            ColorType::GrayscaleAlpha => {
                for (out, pixel) in pixels.zip(packed.chunks_exact(2)) {
                    out.fill(pixel[0]);
                }
            }
        }
    }
    Ok(out)
}

/// A palette's indices, greys, or the first colour.
fn first(rows: &Rows, meta: &ImageMeta) -> Result<Vec<u8>, Error> {
    let scale = if rows.colour == ColorType::Indexed { 1 } else { grey_scale(rows.depth) };
    let samples = rows.colour.samples();
    let mut out = zeros(meta, 1)?;
    let lines = out.chunks_exact_mut(meta.size.width as usize);
    for (out, packed) in lines.zip(rows.packed.chunks_exact(rows.line)) {
        for (column, out) in out.iter_mut().enumerate() {
            *out = sample(packed, samples * column, rows.depth) * scale;
        }
    }
    Ok(out)
}

fn is_eof(error: &DecodingError) -> bool {
    matches!(error, DecodingError::IoError(io) if io.kind() == std::io::ErrorKind::UnexpectedEof)
}

fn convert(error: &DecodingError) -> Error {
    match error {
        DecodingError::IoError(io) if io.kind() == STOPPED => Error::Stopped,
        _ if is_eof(error) => Error::truncated("image data ends early"),
        DecodingError::LimitsExceeded => Error::Memory { what: "PNG chunks".to_owned() },
        DecodingError::IoError(_) | DecodingError::Format(_) => {
            Error::png(named_chunks(error.to_string()))
        }
        DecodingError::Parameter(_) => Error::internal(error.to_string()),
    }
}

/// The crate's text with the name of a chunk where it says all about its kind.
fn named_chunks(mut text: String) -> String {
    const OPENING: &str = "ChunkType { type: ";
    while let Some(start) = text.find(OPENING) {
        let named = &text[start + OPENING.len()..];
        let Some((name, (_, behind))) =
            named.split_once(',').map(|(name, _)| name).zip(named.split_once('}'))
        else {
            break;
        };
        text = [&text[..start], name, behind].concat();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_named() {
        let text =
            "CRC error: in ChunkType { type: IDAT, critical: true }, was ChunkType { type: x";
        let named = "CRC error: in IDAT, was ChunkType { type: x";
        assert_eq!(named_chunks(text.to_owned()), named);
    }
}
