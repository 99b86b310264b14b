//! GIF pixels of the first image, by the `gif` crate.

use super::reader::Stoppable;
use super::{Channels, Stored, check_size, painted, read_error, rgb_palette, zeros};
use crate::Error;
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Size};
use gif::{DecodeOptions, Decoder, DecodingError, MemoryLimit};
use std::num::NonZeroU64;

/// The decoder in front of the first image's pixels, and what describes them.
pub(crate) struct Opened<'a> {
    decoder: Decoder<Stoppable<'a>>,
    /// The screen, enlarged to hold the image, as Pillow does.
    pub(crate) size: Size,
    pub(crate) transparent: Option<u8>,
    frame: Frame,
}

/// Where the image lies on the screen.
struct Frame {
    left: usize,
    top: usize,
    width: usize,
}

/// Reads up to the first image's pixels, for which `limit` bytes may be taken.
pub(crate) fn open<'a>(bytes: &'a [u8], limit: u64, stop: &'a Stop) -> Result<Opened<'a>, Error> {
    let mut options = DecodeOptions::new();
    // Metadata is kept too, and is never longer than the file.
    let limit = NonZeroU64::MIN.saturating_add(limit.max(bytes.len() as u64));
    options.set_memory_limit(MemoryLimit::Bytes(limit));
    let mut decoder =
        options.read_info(Stoppable::new(bytes, stop)).map_err(|error| convert(&error))?;
    let screen = (u32::from(decoder.width()), u32::from(decoder.height()));
    let frame = decoder.next_frame_info().map_err(|error| convert(&error))?;
    let frame = frame.ok_or_else(|| Error::damaged(Format::Gif, "no image"))?;
    let right = u32::from(frame.left) + u32::from(frame.width);
    let bottom = u32::from(frame.top) + u32::from(frame.height);
    if frame.width == 0 || frame.height == 0 {
        return Err(Error::damaged(Format::Gif, "an empty image"));
    }
    let size = Size { width: screen.0.max(right), height: screen.1.max(bottom) };
    let transparent = frame.transparent;
    let frame = Frame {
        left: usize::from(frame.left),
        top: usize::from(frame.top),
        width: usize::from(frame.width),
    };
    Ok(Opened { decoder, size, transparent, frame })
}

/// All pixels. What the image leaves free has the transparent colour, or the palette's first.
pub(super) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    stop: &Stop,
) -> Result<Stored, Error> {
    let mut opened = open(bytes, meta.size.pixels(), stop)?;
    check_size(meta, opened.size)?;
    let palette = opened.decoder.palette().map_err(|error| convert(&error))?;
    let palette = rgb_palette(Some(palette));
    let mut image = Error::filled(0, opened.decoder.buffer_size(), "a GIF")?;
    opened.decoder.read_into_buffer(&mut image).map_err(|error| convert(&error))?;
    let mut indices = zeros(meta, 1)?;
    indices.fill(opened.transparent.unwrap_or(0));
    let Frame { width, left, top } = opened.frame;
    let rows = indices.chunks_exact_mut(meta.size.width as usize).skip(top);
    for (out, image) in rows.zip(image.chunks_exact(width)) {
        out[left..left + width].copy_from_slice(image);
    }
    if channels == Channels::Stored {
        return Ok(Stored::bytes(1, indices));
    }
    let pixels = painted(&indices, &palette)?;
    let Some(transparent) = opened.transparent.filter(|_| channels == Channels::RgbAlpha) else {
        return Ok(Stored::bytes(3, pixels));
    };
    let mut stored = Stored::opaque(&pixels)?;
    for (pixel, &index) in stored.pixels.as_chunks_mut::<4>().0.iter_mut().zip(&indices) {
        if index == transparent {
            pixel[3] = 0;
        }
    }
    Ok(stored)
}

fn convert(error: &DecodingError) -> Error {
    match error {
        DecodingError::Io(error) => read_error(Format::Gif, error),
        DecodingError::UnexpectedEof => Error::truncated("image data ends early"),
        DecodingError::OutOfMemory => Error::Memory { what: "a GIF".to_owned() },
        _ => Error::damaged(Format::Gif, error.to_string()),
    }
}
