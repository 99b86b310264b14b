//! WebP pixels, by `image-webp`, whose chroma upsampling is libwebp's to the bit.
//!
//! The crate gets the first image and its alpha alone. What lies beside them (metadata, later frames)
//! could only make it refuse what libwebp takes; where alpha is not wanted, so could that.

use super::reader::Stoppable;
use super::{Channels, Stored, drop_alpha, read_error, zeros};
use crate::Error;
use crate::probe::webp::{ALPHA, Picture};
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Size};
use image_webp::{DecodingError, WebPDecoder};

/// All pixels, RGB, or RGBA where it is wanted and there; those around an animation's first frame
/// are zeros.
pub(super) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    stop: &Stop,
) -> Result<Stored, Error> {
    let picture = Picture::find(bytes)?;
    let alpha = picture.alpha && channels != Channels::Rgb;
    let file = file(&picture, alpha)?;
    let mut decoder =
        WebPDecoder::new(Stoppable::new(&file, stop)).map_err(|error| convert(&error))?;
    let (width, height) = decoder.dimensions();
    if (Size { width, height }) != picture.size {
        return Err(Error::damaged(Format::WebP, "sizes that contradict each other"));
    }
    let (decoded, channels) = (if decoder.has_alpha() { 4 } else { 3 }, if alpha { 4 } else { 3 });
    let frame = ImageMeta { size: picture.size, ..meta.clone() };
    let mut pixels = zeros(&frame, decoded)?;
    decoder.read_image(&mut pixels).map_err(|error| convert(&error))?;
    let wanted = usize::from(channels);
    if wanted < decoded {
        drop_alpha(&mut pixels);
    } else if wanted > decoded {
        pixels = Stored::opaque(&pixels)?.pixels;
    }
    let (line, row) = (wanted * meta.size.width as usize, wanted * width as usize);
    let left = wanted * picture.x as usize;
    if picture.size == meta.size {
        return Ok(Stored::bytes(channels, pixels));
    }
    let mut canvas = zeros(meta, wanted)?;
    let rows = canvas.chunks_exact_mut(line).skip(picture.y as usize);
    for (out, pixels) in rows.zip(pixels.chunks_exact(row)) {
        out[left..left + row].copy_from_slice(pixels);
    }
    Ok(Stored::bytes(channels, canvas))
}

/// A file of nothing but the image, and its alpha.
fn file(picture: &Picture<'_>, alpha: bool) -> Result<Vec<u8>, Error> {
    let mut chunks: Vec<(&[u8; 4], &[u8])> = Vec::new();
    let side = |side: u32| (side - 1).to_le_bytes();
    let (across, down) = (side(picture.size.width), side(picture.size.height));
    let header = [&[ALPHA, 0, 0, 0], &across[..3], &down[..3]].concat();
    if let Some(planes) = picture.alpha_chunk.filter(|_| alpha) {
        chunks.push((b"VP8X", &header));
        chunks.push((b"ALPH", planes));
    }
    chunks.push((&picture.kind, picture.bitstream));
    let length: usize = chunks.iter().map(|(_, of)| 8 + of.len().next_multiple_of(2)).sum();
    let mut file = Error::filled(0, 12 + length, "a WebP file")?;
    let too_long = |_| Error::damaged(Format::WebP, "a chunk of 4 GiB");
    file[..4].copy_from_slice(b"RIFF");
    file[4..8].copy_from_slice(&u32::try_from(4 + length).map_err(too_long)?.to_le_bytes());
    file[8..12].copy_from_slice(b"WEBP");
    let mut rest = &mut file[12..];
    for (kind, content) in chunks {
        let (chunk, behind) = rest.split_at_mut(8 + content.len().next_multiple_of(2));
        chunk[..4].copy_from_slice(kind);
        let length = u32::try_from(content.len()).map_err(too_long)?;
        chunk[4..8].copy_from_slice(&length.to_le_bytes());
        chunk[8..8 + content.len()].copy_from_slice(content);
        rest = behind;
    }
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
