//! Netpbm's maps of bits, greys and colours (PBM, PGM, PPM; text and binary), by the `image` crate.

use super::reader::Stoppable;
use super::{Channels, Stored, check_size, image_error, zeros};
use crate::Error;
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Size};
use image::codecs::pnm::{PnmDecoder, PnmSubtype, SampleEncoding};
use image::{ColorType, ImageDecoder};

/// Whether a file begins as one of them does.
pub(crate) fn is_pnm(bytes: &[u8]) -> bool {
    matches!(bytes, [b'P', b'1'..=b'6', behind, ..] if behind.is_ascii_whitespace() || *behind == b'#')
}

/// Reads the header.
pub(crate) fn open<'a>(
    bytes: &'a [u8],
    stop: &'a Stop,
) -> Result<PnmDecoder<Stoppable<'a>>, Error> {
    PnmDecoder::new(Stoppable::new(bytes, stop)).map_err(|error| image_error(Format::Pnm, &error))
}

/// Bytes of a file with all of its pixels: a digit a sample of text, and a blank between two numbers.
pub(crate) fn least_bytes(decoder: &PnmDecoder<Stoppable<'_>>) -> u64 {
    let (width, height) = decoder.dimensions();
    let pixels = u64::from(width) * u64::from(height);
    let samples = u64::from(decoder.color_type().channel_count()) * pixels;
    match decoder.subtype() {
        PnmSubtype::Bitmap(SampleEncoding::Ascii) => samples,
        PnmSubtype::Bitmap(_) => u64::from(width).div_ceil(8) * u64::from(height),
        PnmSubtype::Graymap(SampleEncoding::Ascii) | PnmSubtype::Pixmap(SampleEncoding::Ascii) => {
            (2 * samples).saturating_sub(1)
        }
        _ => decoder.total_bytes(),
    }
}

/// All pixels: grey as it is where that is asked for, else RGB.
pub(super) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    stop: &Stop,
) -> Result<Stored, Error> {
    let decoder = open(bytes, stop)?;
    let (width, height) = decoder.dimensions();
    check_size(meta, Size { width, height })?;
    let (colour, most) = (decoder.color_type(), decoder.header().maximal_sample());
    let wide = matches!(colour, ColorType::L16 | ColorType::Rgb16);
    let mut pixels = zeros(meta, usize::from(colour.bytes_per_pixel()))?;
    decoder.read_image(&mut pixels).map_err(|error| image_error(Format::Pnm, &error))?;
    let grey = colour.channel_count() == 1;
    let stored = Stored { channels: colour.channel_count(), wide, pixels };
    if channels == Channels::Stored && wide {
        return Ok(stored);
    }
    let pixels = if wide { narrow(&stored.pixels)? } else { rescaled(stored.pixels, most) };
    Ok(if grey && channels != Channels::Stored {
        let mut rgb = zeros(meta, 3)?;
        for (pixel, &grey) in rgb.as_chunks_mut::<3>().0.iter_mut().zip(&pixels) {
            *pixel = [grey; 3];
        }
        Stored::bytes(3, rgb)
    } else {
        Stored::bytes(colour.channel_count(), pixels)
    })
}

/// 16 bits as 8, rounded, as Pillow does with colours.
fn narrow(wide: &[u8]) -> Result<Vec<u8>, Error> {
    let mut pixels = Error::filled(0, wide.len() / 2, "a PNM's pixels")?;
    for (pixel, &sample) in pixels.iter_mut().zip(wide.as_chunks().0) {
        let rounded = (u32::from(u16::from_ne_bytes(sample)) + 128) / 257;
        *pixel = rounded.to_le_bytes()[0];
    }
    Ok(pixels)
}

/// Values of which the largest was `most`, rounded as Pillow does, to the even one of two; the crate
/// takes the upper one.
fn rescaled(mut pixels: Vec<u8>, most: u32) -> Vec<u8> {
    // Of 1 to 254 there are values between; no two of them become one.
    let most = u8::try_from(most).unwrap_or(u8::MAX);
    if (2..u8::MAX).contains(&most) {
        let mut table: [u8; 256] = std::array::from_fn(|value| value.to_le_bytes()[0]);
        let factor = 255.0 / f32::from(most);
        for value in 0..=most {
            let up = f32::from(value) * factor;
            let even = f64::from(value) / f64::from(most) * 255.0;
            table[byte(f64::from(up.round()))] = byte(even.round_ties_even()).to_le_bytes()[0];
        }
        for pixel in &mut pixels {
            *pixel = table[usize::from(*pixel)];
        }
    }
    pixels
}

/// A whole number from 0 to 255.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it fits")]
fn byte(value: f64) -> usize {
    usize::from(value as u8)
}
