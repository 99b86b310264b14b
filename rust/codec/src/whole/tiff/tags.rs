//! What the tags of a TIFF's first page say, and which of it is decoded.

use super::coded::{Coded, Compression};
use super::directory::{has_endless_text, palette_mark};
use super::{Colour, Opened, convert};
use crate::Error;
use crate::whole::reader::Stoppable;
use forebay_core::ports::Stop;
use forebay_core::{Format, Orientation, Size};
use tiff::decoder::{ChunkType, Decoder, Limits};
use tiff::tags::{
    CompressionMethod, ExtraSamples, PhotometricInterpretation, PlanarConfiguration, Predictor,
    SampleFormat, Tag,
};
use tiff::{ColorType, TiffError};

/// Reads the first page's tags.
pub(crate) fn open<'a>(bytes: &'a [u8], stop: &'a Stop) -> Result<Opened<'a>, Error> {
    let (decoder, photometric) = decoder(bytes, stop).map_err(|error| convert(&error))?;
    let mut opened = read(decoder, bytes, photometric).map_err(|error| convert(&error))??;
    if let Some(coded) = &opened.coded {
        coded.check(bytes, opened.size)?;
    }
    let mut limits = Limits::default();
    // Twice, for 16 bits; no value, strip or tile is longer than the file.
    let pixels = usize::try_from(opened.tile.pixels()).unwrap_or(usize::MAX);
    limits.decoding_buffer_size = pixels.saturating_mul(2 * usize::from(opened.components));
    limits.intermediate_buffer_size = bytes.len();
    limits.ifd_value_size = bytes.len();
    opened.decoder = opened.decoder.with_limits(limits);
    Ok(opened)
}

type Photometric = Option<PhotometricInterpretation>;

/// The crate reads no indices, but takes them for greys if it is told so.
fn decoder<'a>(
    bytes: &'a [u8],
    stop: &'a Stop,
) -> Result<(Decoder<Stoppable<'a>>, Photometric), TiffError> {
    if has_endless_text(bytes) {
        return Err(TiffError::LimitsExceeded);
    }
    let mut decoder = Decoder::new(Stoppable::new(bytes, stop))?;
    let photometric = decoder
        .find_tag_unsigned(Tag::PhotometricInterpretation)?
        .and_then(PhotometricInterpretation::from_u16);
    if photometric == Some(PhotometricInterpretation::RGBPalette)
        && let Some(place) = palette_mark(bytes)
    {
        let grey = PhotometricInterpretation::BlackIsZero as u8;
        decoder = Decoder::new(Stoppable::new(bytes, stop).patched(place, grey))?;
    }
    Ok((decoder, photometric))
}

/// The outer error is the crate's, the inner one our refusal.
fn read<'a>(
    mut decoder: Decoder<Stoppable<'a>>,
    bytes: &'a [u8],
    photometric: Photometric,
) -> Result<Result<Opened<'a>, Error>, TiffError> {
    let (width, height) = decoder.dimensions()?;
    let size = Size { width, height };
    let planar = decoder.find_tag_unsigned::<u16>(Tag::PlanarConfiguration)?
        == Some(PlanarConfiguration::Planar.to_u16());
    let reversed = decoder.find_tag_unsigned::<u16>(Tag::FillOrder)? == Some(2);
    let ycbcr = photometric == Some(PhotometricInterpretation::YCbCr) && !planar;
    let method = decoder.find_tag_unsigned::<u16>(Tag::Compression)?.unwrap_or(1);
    let method = CompressionMethod::from_u16_exhaustive(method);
    let compression = match compression(&mut decoder, method, ycbcr, reversed)? {
        Ok(compression) => compression,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let kind = decoder.colortype()?;
    let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples)?.unwrap_or_default();
    let extra = extra.first().copied();
    let stored = decoder.find_tag_unsigned::<u16>(Tag::SamplesPerPixel)?.unwrap_or(1);
    let plain = compression.is_none();
    let formats = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat)?.unwrap_or_default();
    let predicted =
        decoder.find_tag_unsigned::<u16>(Tag::Predictor)? == Some(Predictor::Horizontal.to_u16());
    let orientation = decoder.find_tag_unsigned::<u16>(Tag::Orientation).unwrap_or_default();
    let chunk_type = decoder.get_chunk_type();
    let (tile_width, tile_height) = decoder.chunk_dimensions();
    let tile = match chunk_type {
        ChunkType::Strip => Size { width, height: tile_height.min(height) },
        ChunkType::Tile => Size { width: tile_width, height: tile_height },
    };

    let refuse = |what: String| Ok(Err(Error::unsupported(format!("TIFF with {what}"))));
    let Some(colour) = colour(kind, photometric, compression.as_ref()) else {
        let kind = match photometric {
            Some(PhotometricInterpretation::RGBPalette) => {
                format!("a palette and {} samples of {} bits", stored, kind.bit_depth())
            }
            _ => described(kind),
        };
        let by = match compression {
            None => "",
            Some(Compression::Jpeg { .. }) => " and JPEG compression",
            Some(Compression::Fax { .. }) => " and CCITT group 4 compression",
        };
        return refuse(format!("{kind}{by}"));
    };
    if formats.iter().any(|&format| format != SampleFormat::Uint.to_u16()) {
        return refuse("signed or floating-point samples".to_owned());
    }
    if reversed && plain {
        return refuse("bits in reversed order".to_owned());
    }
    // The crate adds the differences up after it has dropped the samples behind the colour.
    if plain && predicted && !planar && stored != kind.num_samples() {
        return refuse("predicted samples beside the colour".to_owned());
    }
    let Some(components) = u8::try_from(stored).ok().filter(|&stored| stored <= 5) else {
        return refuse(format!("{stored} samples a pixel"));
    };
    let depth = kind.bit_depth();
    let palette = match colour {
        Colour::Indexed => match palette(&mut decoder, depth)? {
            Ok(palette) => palette,
            Err(damage) => return Ok(Err(damage)),
        },
        _ => Vec::new(),
    };
    let coded = match compression {
        None => None,
        Some(compression) => match chunks(&mut decoder, bytes, chunk_type)? {
            Ok(chunks) => Some(Coded {
                compression,
                chunks,
                components: if planar { 1 } else { components },
                inverted: photometric == Some(PhotometricInterpretation::WhiteIsZero),
            }),
            Err(truncated) => return Ok(Err(truncated)),
        },
    };
    let samples = usize::from(if plain { kind.num_samples() } else { stored });
    let read = if planar { usize::from(stored) } else { samples };
    // Without the tag a fourth sample is alpha, to Pillow, too.
    let behind = extra.and_then(ExtraSamples::from_u16);
    let unsaid = extra.is_none() && colour == Colour::Rgb;
    let alpha = behind.or(unsaid.then_some(ExtraSamples::UnassociatedAlpha));
    let alpha = alpha.filter(|_| read > colour.samples());
    Ok(Ok(Opened {
        decoder,
        size,
        orientation: orientation.and_then(Orientation::from_exif).unwrap_or_default(),
        components,
        alpha: matches!(
            alpha,
            Some(ExtraSamples::AssociatedAlpha | ExtraSamples::UnassociatedAlpha)
        ),
        premultiplied: alpha == Some(ExtraSamples::AssociatedAlpha) && colour != Colour::Indexed,
        colour,
        palette,
        coded,
        expansion: expansion(method),
        samples,
        depth,
        planar,
        tile,
    }))
}

/// Samples of a pixel, in words.
fn described(kind: ColorType) -> String {
    match kind {
        ColorType::Multiband { bit_depth, num_samples } => {
            format!("{num_samples} samples of {bit_depth} bits a pixel")
        }
        _ => format!("{kind:?} pixels"),
    }
}

/// None is the crate's.
fn compression(
    decoder: &mut Decoder<Stoppable<'_>>,
    method: CompressionMethod,
    ycbcr: bool,
    reversed: bool,
) -> Result<Result<Option<Compression>, Error>, TiffError> {
    let name = match method {
        CompressionMethod::None
        | CompressionMethod::LZW
        | CompressionMethod::Deflate
        | CompressionMethod::OldDeflate
        | CompressionMethod::PackBits => return Ok(Ok(None)),
        CompressionMethod::ModernJPEG => {
            let tables = decoder.find_tag_unsigned_vec::<u8>(Tag::JPEGTables)?.unwrap_or_default();
            let tables = tables.strip_prefix(b"\xff\xd8").unwrap_or(&tables);
            let tables = tables.strip_suffix(b"\xff\xd9").unwrap_or(tables).to_vec();
            return Ok(Ok(Some(Compression::Jpeg { tables, ycbcr })));
        }
        CompressionMethod::Fax4 => return Ok(Ok(Some(Compression::Fax { reversed }))),
        CompressionMethod::Huffman => "CCITT modified Huffman compression".to_owned(),
        CompressionMethod::Fax3 => "CCITT group 3 compression".to_owned(),
        CompressionMethod::JPEG => "old-style JPEG compression".to_owned(),
        CompressionMethod::Unknown(number) => format!("compression {number}"),
        other => format!("{other:?} compression"),
    };
    Ok(Err(Error::unsupported(format!("TIFF with {name}"))))
}

/// Bytes of samples that a byte of a file gives at the most, by what a shortest code stands for.
fn expansion(method: CompressionMethod) -> u64 {
    match method {
        CompressionMethod::None => 1,
        CompressionMethod::PackBits => 64,
        CompressionMethod::Deflate | CompressionMethod::OldDeflate => 1032,
        // Twelve bits for the longest string that 4096 codes can name.
        CompressionMethod::LZW => 4096,
        // Checked strip by strip.
        _ => u64::MAX,
    }
}

/// What the pixels are made of, if they are decoded.
fn colour(
    kind: ColorType,
    photometric: Photometric,
    compression: Option<&Compression>,
) -> Option<Colour> {
    match compression {
        Some(Compression::Jpeg { ycbcr: true, .. }) if kind == ColorType::YCbCr(8) => {
            return Some(Colour::Rgb);
        }
        Some(Compression::Jpeg { .. }) if kind.bit_depth() != 8 => return None,
        Some(Compression::Fax { .. }) if kind != ColorType::Gray(1) => return None,
        _ => {}
    }
    let indexed = photometric == Some(PhotometricInterpretation::RGBPalette);
    Some(match kind {
        ColorType::Gray(1 | 2 | 4 | 8) | ColorType::Multiband { bit_depth: 8, num_samples: 2 }
            if indexed =>
        {
            Colour::Indexed
        }
        _ if indexed => return None,
        ColorType::Gray(1 | 2 | 4 | 8 | 16)
        | ColorType::Multiband { bit_depth: 8 | 16, num_samples: 2 } => Colour::Grey,
        ColorType::RGB(8 | 16) | ColorType::RGBA(8 | 16) => Colour::Rgb,
        ColorType::CMYK(8 | 16) => Colour::Cmyk,
        _ => return None,
    })
}

/// All reds, then all greens, then all blues, of 16 bits each, of which Pillow takes the high ones.
fn palette(
    decoder: &mut Decoder<Stoppable<'_>>,
    depth: u8,
) -> Result<Result<Vec<[u8; 3]>, Error>, TiffError> {
    let stored = decoder.find_tag_unsigned_vec::<u16>(Tag::ColorMap)?.unwrap_or_default();
    let colours = 1 << depth;
    if stored.len() != 3 * colours {
        let what = format!("palette of {} values, expected {}", stored.len(), 3 * colours);
        return Ok(Err(Error::damaged(Format::Tiff, what)));
    }
    let high = |value: u16| value.to_be_bytes()[0];
    let colour = |at: usize| [0, 1, 2].map(|plane| high(stored[plane * colours + at]));
    Ok(Ok((0..colours).map(colour).collect()))
}

/// The parts of the file that are strips or tiles.
fn chunks<'a>(
    decoder: &mut Decoder<Stoppable<'_>>,
    bytes: &'a [u8],
    kind: ChunkType,
) -> Result<Result<Vec<&'a [u8]>, Error>, TiffError> {
    let (offsets, lengths) = match kind {
        ChunkType::Strip => (Tag::StripOffsets, Tag::StripByteCounts),
        ChunkType::Tile => (Tag::TileOffsets, Tag::TileByteCounts),
    };
    let offsets = decoder.find_tag_unsigned_vec::<u64>(offsets)?.unwrap_or_default();
    let lengths = decoder.find_tag_unsigned_vec::<u64>(lengths)?.unwrap_or_default();
    let part = |(offset, length): (u64, u64)| {
        let offset = usize::try_from(offset).ok()?;
        bytes.get(offset..offset.checked_add(usize::try_from(length).ok()?)?)
    };
    let parts: Option<Vec<_>> = offsets.into_iter().zip(lengths).map(part).collect();
    Ok(parts.ok_or_else(|| Error::truncated("image data ends early")))
}
