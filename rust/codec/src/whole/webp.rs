//! WebP pixels, by `image-webp`, whose chroma upsampling is libwebp's to the bit.
//!
//! The crate gets the bitstream of the first image alone. What lies beside it (alpha, which is
//! dropped, metadata, later frames) could only make it refuse what libwebp takes.

use super::reader::Stoppable;
use super::{drop_alpha, read_error, zeros};
use crate::Error;
use crate::probe::webp::Picture;
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Size};
use image_webp::{DecodingError, WebPDecoder};

/// All pixels, RGB; those around an animation's first frame are black.
pub(super) fn decode(bytes: &[u8], meta: &ImageMeta, stop: &Stop) -> Result<Vec<u8>, Error> {
    let picture = Picture::find(bytes)?;
    let file = simple_file(&picture)?;
    let mut decoder =
        WebPDecoder::new(Stoppable::new(&file, stop)).map_err(|error| convert(&error))?;
    let (width, height) = decoder.dimensions();
    if (Size { width, height }) != picture.size {
        return Err(Error::damaged(Format::WebP, "sizes that contradict each other"));
    }
    let alpha = decoder.has_alpha();
    let frame = ImageMeta { size: picture.size, ..meta.clone() };
    let mut pixels = zeros(&frame, if alpha { 4 } else { 3 })?;
    decoder.read_image(&mut pixels).map_err(|error| convert(&error))?;
    if alpha {
        drop_alpha(&mut pixels);
    }
    if picture.size == meta.size {
        return Ok(pixels);
    }
    let mut canvas = zeros(meta, 3)?;
    let (line, row) = (3 * meta.size.width as usize, 3 * width as usize);
    let left = 3 * picture.x as usize;
    let rows = canvas.chunks_exact_mut(line).skip(picture.y as usize);
    for (out, pixels) in rows.zip(pixels.chunks_exact(row)) {
        out[left..left + row].copy_from_slice(pixels);
    }
    Ok(canvas)
}

/// A file of nothing but the image.
fn simple_file(picture: &Picture<'_>) -> Result<Vec<u8>, Error> {
    let length = picture.bitstream.len();
    let padding = length % 2;
    let chunk = u32::try_from(length).ok().filter(|&length| length <= u32::MAX - 13);
    let chunk = chunk.ok_or_else(|| Error::damaged(Format::WebP, "a chunk of 4 GiB"))?;
    let mut file = Error::filled(0, 20 + length + padding, "a WebP file")?;
    let riff = 12 + chunk + u32::from(padding == 1);
    file[..4].copy_from_slice(b"RIFF");
    file[4..8].copy_from_slice(&riff.to_le_bytes());
    file[8..12].copy_from_slice(b"WEBP");
    file[12..16].copy_from_slice(&picture.kind);
    file[16..20].copy_from_slice(&chunk.to_le_bytes());
    file[20..20 + length].copy_from_slice(picture.bitstream);
    Ok(file)
}

fn convert(error: &DecodingError) -> Error {
    match error {
        DecodingError::IoError(error) => read_error(Format::WebP, error),
        DecodingError::UnsupportedFeature(what) => Error::unsupported(format!("WebP with {what}")),
        DecodingError::MemoryLimitExceeded => Error::Memory { what: "a WebP".to_owned() },
        _ => Error::damaged(Format::WebP, error.to_string()),
    }
}
