//! BMP pixels, by the `image` crate.

use super::reader::Stoppable;
use super::{Channels, Stored, check_size, drop_alpha, image_error, painted, zeros};
use crate::Error;
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Size};
use image::ImageDecoder;
use image::codecs::bmp::BmpDecoder;

/// Reads the header.
pub(crate) fn open<'a>(
    bytes: &'a [u8],
    stop: &'a Stop,
) -> Result<BmpDecoder<Stoppable<'a>>, Error> {
    BmpDecoder::new(Stoppable::new(bytes, stop)).map_err(|error| image_error(Format::Bmp, &error))
}

/// All pixels: a palette's indices where they are asked for, else RGB, or RGBA where it is asked for
/// and there.
pub(super) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    stop: &Stop,
) -> Result<Stored, Error> {
    let decoder = open(bytes, stop)?;
    let Some(palette) = decoder.get_palette() else {
        let mut stored = read(decoder, meta)?;
        if let Some(bits) = few_bits(bytes) {
            spread(&mut stored, bits);
        }
        if channels == Channels::Rgb && stored.channels == 4 {
            drop_alpha(&mut stored.pixels);
            stored.channels = 3;
        }
        return Ok(stored);
    };
    let numbered = numbered(bytes)?;
    let numbers = read(open(&numbered, stop)?, meta)?;
    let mut indices = zeros(meta, 1)?;
    for (index, number) in indices.iter_mut().zip(numbers.pixels.as_chunks::<3>().0) {
        *index = number[0];
    }
    if channels == Channels::Stored {
        return Ok(Stored::bytes(1, indices));
    }
    Ok(Stored::bytes(3, painted(&indices, palette)?))
}

/// Bytes of a file whose rows stand there as they are; run-length codes may end anywhere.
pub(crate) fn least_bytes(bytes: &[u8], size: Size) -> u64 {
    let short = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let core = short(14) == Some(12);
    if !core && !matches!(short(30), Some(0 | 3)) {
        return 0;
    }
    let bits = short(if core { 24 } else { 28 }).map_or(0, u64::from);
    (u64::from(size.width) * bits).div_ceil(32) * 4 * u64::from(size.height)
}

/// The file with numbers for a palette's colours, so that decoding it gives indices. The crate
/// itself gives none of fewer than 8 bits, and makes pixels that run-length codes skip black, where
/// Pillow gives them the palette's first colour.
fn numbered(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    /// The length of the first header, whose fields and palette are narrower than those of others.
    const CORE: usize = 12;
    let short = || Error::truncated("the file ends inside its header");
    let long = |at: usize| {
        let bytes = bytes.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(bytes)).ok()
    };
    let (data, header) = long(10).zip(long(14)).ok_or_else(short)?;
    let (bits, colour) = if header == CORE { (24, 3) } else { (28, 4) };
    let colours = 1_usize << bytes.get(bits).ok_or_else(short)?.clamp(&1, &8);
    let start = 14 + header;
    let head = bytes.get(..start).ok_or_else(short)?;
    let data = bytes.get(data..).ok_or_else(short)?;
    let mut numbered = Error::filled(0, start + colour * colours + data.len(), "a BMP")?;
    numbered[..start].copy_from_slice(head);
    let place = u32::try_from(start + colour * colours).map_err(|_| short())?;
    numbered[10..14].copy_from_slice(&place.to_le_bytes());
    if header != CORE {
        // The number of colours, 0 for all there can be.
        numbered[46..50].fill(0);
    }
    let palette = numbered[start..].chunks_exact_mut(colour).take(colours);
    (0..=u8::MAX).zip(palette).for_each(|(number, colour)| colour.fill(number));
    numbered[place as usize..].copy_from_slice(data);
    Ok(numbered)
}

/// Bits of red, green and blue in a file of 16 bits a pixel, if Pillow reads such.
fn few_bits(bytes: &[u8]) -> Option<[u32; 3]> {
    const FIELDS: u32 = 3;
    let long = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if bytes.get(28..30)? != [16, 0] || long(14)? < 40 {
        return None;
    }
    let masks =
        if long(30)? == FIELDS { [long(54)?, long(58)?, long(62)?] } else { [0x7c00, 0x3e0, 0x1f] };
    matches!(masks, [0x7c00, 0x3e0, 0x1f] | [0xf800, 0x7e0, 0x1f])
        .then(|| masks.map(u32::count_ones))
}

/// Values of few bits as Pillow spreads them over 8, rounded down; the crate rounds to the nearest.
fn spread(stored: &mut Stored, bits: [u32; 3]) {
    let tables = bits.map(|bits| {
        let most = (1 << bits) - 1;
        let mut table = [0; 256];
        for value in 0..=most {
            let byte = |value: u32| value.to_le_bytes()[0];
            table[usize::from(byte((255 * value + most / 2) / most))] = byte(255 * value / most);
        }
        table
    });
    for pixel in stored.pixels.chunks_exact_mut(usize::from(stored.channels)) {
        for (value, table) in pixel.iter_mut().zip(&tables) {
            *value = table[usize::from(*value)];
        }
    }
}

/// RGB, with alpha where the file has it.
fn read(decoder: BmpDecoder<Stoppable<'_>>, meta: &ImageMeta) -> Result<Stored, Error> {
    let channels = decoder.color_type().channel_count();
    let (width, height) = decoder.dimensions();
    check_size(meta, Size { width, height })?;
    let mut pixels = zeros(meta, usize::from(channels))?;
    decoder.read_image(&mut pixels).map_err(|error| image_error(Format::Bmp, &error))?;
    Ok(Stored::bytes(channels, pixels))
}
