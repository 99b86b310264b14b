//! BMP pixels, by the `image` crate.

use super::reader::Stoppable;
use super::{drop_alpha, read_error, zeros};
use crate::Error;
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta};
use image::codecs::bmp::BmpDecoder;
use image::error::UnsupportedErrorKind;
use image::{ImageDecoder, ImageError};
use std::error::Error as _;

/// Reads the header.
pub(crate) fn open<'a>(
    bytes: &'a [u8],
    stop: &'a Stop,
) -> Result<BmpDecoder<Stoppable<'a>>, Error> {
    BmpDecoder::new(Stoppable::new(bytes, stop)).map_err(|error| convert(&error))
}

/// All pixels, RGB.
pub(super) fn decode(bytes: &[u8], meta: &ImageMeta, stop: &Stop) -> Result<Vec<u8>, Error> {
    let Some(numbered) = numbered(bytes)? else {
        return read(open(bytes, stop)?, meta);
    };
    let decoder = open(bytes, stop)?;
    let palette = decoder.get_palette().unwrap_or_default();
    let mut pixels = read(open(&numbered, stop)?, meta)?;
    for pixel in pixels.chunks_exact_mut(3) {
        pixel.copy_from_slice(&palette[usize::from(pixel[0])]);
    }
    Ok(pixels)
}

/// A file of run-length codes with numbers for colours, so that decoding it gives indices: the
/// crate makes pixels that the codes skip black, and Pillow of the palette's first colour.
fn numbered(bytes: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    const RUN_LENGTHS: [u32; 2] = [1, 2];
    let long = |at: usize| {
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    };
    let (Some(data), Some(header), Some(kind), Some(used)) =
        (long(10), long(14), long(30), long(46))
    else {
        return Ok(None);
    };
    let start = 14 + header as usize;
    let colours = if used == 0 { 1 << bytes[28].min(8) } else { used as usize };
    if header < 40 || !RUN_LENGTHS.contains(&kind) || start + 4 * colours > data as usize {
        return Ok(None);
    }
    let mut numbered = Error::filled(0, bytes.len(), "a BMP")?;
    numbered.copy_from_slice(bytes);
    let palette = numbered.get_mut(start..).unwrap_or_default();
    for (number, colour) in (0..=u8::MAX).zip(palette.chunks_exact_mut(4)).take(colours) {
        colour.fill(number);
    }
    Ok(Some(numbered))
}

fn read(decoder: BmpDecoder<Stoppable<'_>>, meta: &ImageMeta) -> Result<Vec<u8>, Error> {
    let alpha = decoder.color_type().has_alpha();
    let mut pixels = zeros(meta, if alpha { 4 } else { 3 })?;
    if decoder.total_bytes() != pixels.len() as u64 {
        return Err(Error::internal(format!("probed {}, found another size", meta.size)));
    }
    decoder.read_image(&mut pixels).map_err(|error| convert(&error))?;
    if alpha {
        drop_alpha(&mut pixels);
    }
    Ok(pixels)
}

fn convert(error: &ImageError) -> Error {
    match error {
        ImageError::IoError(error) => read_error(Format::Bmp, error),
        ImageError::Unsupported(unsupported) => Error::unsupported(match unsupported.kind() {
            UnsupportedErrorKind::GenericFeature(what) => format!("BMP with {what}"),
            _ => format!("BMP: {unsupported}"),
        }),
        ImageError::Limits(_) => Error::Memory { what: "a BMP".to_owned() },
        // The text of the crate's own error, without the format's name again.
        _ => Error::damaged(
            Format::Bmp,
            error.source().map_or_else(|| error.to_string(), ToString::to_string),
        ),
    }
}
