//! TIFF pixels of the first page, by the `tiff` crate, a strip or tile at a time.
//!
//! Invariants: of 16 bits the high byte is taken, for grey too, where Pillow clips all above 255 to
//! white; what the crate would read wrong in silence is refused.

use super::reader::Stoppable;
use super::{grey_scale, read_error, sample, zeros};
use crate::Error;
use crate::jpeg::rgb_from_inks;
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Orientation, Size};
use tiff::decoder::{ChunkType, Decoder, DecodingResult, Limits};
use tiff::tags::{ExtraSamples, PlanarConfiguration, Predictor, SampleFormat, Tag};
use tiff::{ColorType, TiffError, TiffUnsupportedError};

/// What a pixel is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    Grey,
    Rgb,
    /// Colour that is multiplied by the alpha behind it, which Pillow undoes.
    Premultiplied,
    Cmyk,
}

impl Colour {
    /// Samples that are read.
    fn samples(self) -> usize {
        match self {
            Self::Grey => 1,
            Self::Rgb => 3,
            Self::Premultiplied | Self::Cmyk => 4,
        }
    }
}

/// The decoder in front of the first page's pixels, and what describes them.
pub(crate) struct Opened<'a> {
    decoder: Decoder<Stoppable<'a>>,
    pub(crate) size: Size,
    pub(crate) orientation: Orientation,
    /// Stored samples of a pixel.
    pub(crate) components: u8,
    pub(crate) alpha: bool,
    colour: Colour,
    /// Samples of a pixel that the crate gives, unless they are planar.
    samples: usize,
    pub(crate) depth: u8,
    planar: bool,
    /// Strips are tiles of the image's width.
    tile: Size,
}

/// Reads the first page's tags.
pub(crate) fn open<'a>(bytes: &'a [u8], stop: &'a Stop) -> Result<Opened<'a>, Error> {
    let decoder = Decoder::new(Stoppable::new(bytes, stop)).map_err(|error| convert(&error))?;
    let mut opened = read_tags(decoder).map_err(|error| convert(&error))??;
    let mut limits = Limits::default();
    // Twice, for 16 bits; no value, strip or tile is longer than the file.
    let pixels = usize::try_from(opened.tile.pixels()).unwrap_or(usize::MAX);
    limits.decoding_buffer_size = pixels.saturating_mul(2 * usize::from(opened.components));
    limits.intermediate_buffer_size = bytes.len();
    limits.ifd_value_size = bytes.len();
    opened.decoder = opened.decoder.with_limits(limits);
    Ok(opened)
}

/// The outer error is the crate's, the inner one our refusal.
fn read_tags(mut decoder: Decoder<Stoppable<'_>>) -> Result<Result<Opened<'_>, Error>, TiffError> {
    let (width, height) = decoder.dimensions()?;
    let size = Size { width, height };
    let kind = decoder.colortype()?;
    let extra = decoder.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples)?.unwrap_or_default();
    let extra = extra.first().copied().and_then(ExtraSamples::from_u16);
    let stored = decoder.find_tag_unsigned::<u16>(Tag::SamplesPerPixel)?.unwrap_or(1);
    let formats = decoder.find_tag_unsigned_vec::<u16>(Tag::SampleFormat)?.unwrap_or_default();
    let planar = decoder.find_tag_unsigned::<u16>(Tag::PlanarConfiguration)?
        == Some(PlanarConfiguration::Planar.to_u16());
    let predicted =
        decoder.find_tag_unsigned::<u16>(Tag::Predictor)? == Some(Predictor::Horizontal.to_u16());
    let reversed = decoder.find_tag_unsigned::<u16>(Tag::FillOrder)? == Some(2);
    let orientation = decoder.find_tag_unsigned::<u16>(Tag::Orientation).unwrap_or_default();
    let (tile_width, tile_height) = decoder.chunk_dimensions();
    let tile = match decoder.get_chunk_type() {
        ChunkType::Strip => Size { width, height: tile_height.min(height) },
        ChunkType::Tile => Size { width: tile_width, height: tile_height },
    };

    let refuse = |what: String| Ok(Err(Error::unsupported(format!("TIFF with {what}"))));
    let colour = match kind {
        ColorType::Gray(1 | 2 | 4 | 8 | 16)
        | ColorType::Multiband { bit_depth: 8 | 16, num_samples: 2 } => Colour::Grey,
        ColorType::RGBA(8 | 16) if extra == Some(ExtraSamples::AssociatedAlpha) => {
            Colour::Premultiplied
        }
        ColorType::RGB(8 | 16) | ColorType::RGBA(8 | 16) => Colour::Rgb,
        ColorType::CMYK(8 | 16) => Colour::Cmyk,
        _ => return refuse(format!("{kind:?} pixels")),
    };
    if formats.iter().any(|&format| format != SampleFormat::Uint.to_u16()) {
        return refuse("signed or floating-point samples".to_owned());
    }
    if reversed {
        return refuse("bits in reversed order".to_owned());
    }
    // The crate adds the differences up after it has dropped the samples behind the colour.
    if predicted && !planar && stored != kind.num_samples() {
        return refuse("predicted samples beside the colour".to_owned());
    }
    let Some(components) = u8::try_from(stored).ok().filter(|&stored| stored <= 5) else {
        return refuse(format!("{stored} samples a pixel"));
    };
    Ok(Ok(Opened {
        decoder,
        size,
        orientation: orientation.and_then(Orientation::from_exif).unwrap_or_default(),
        components,
        alpha: matches!(
            extra,
            Some(ExtraSamples::AssociatedAlpha | ExtraSamples::UnassociatedAlpha)
        ),
        colour,
        samples: usize::from(kind.num_samples()),
        depth: kind.bit_depth(),
        planar,
        tile,
    }))
}

impl Opened<'_> {
    /// Tiles across and down.
    fn tiles(&self) -> (u32, u32) {
        (self.size.width.div_ceil(self.tile.width), self.size.height.div_ceil(self.tile.height))
    }

    /// The size of all tiles together, which are decoded whole.
    pub(crate) fn tiled_size(&self) -> Size {
        let (across, down) = self.tiles();
        let width = self.tile.width.saturating_mul(across);
        // The last strip is not filled up.
        let height = match self.decoder.get_chunk_type() {
            ChunkType::Strip => self.size.height,
            ChunkType::Tile => self.tile.height.saturating_mul(down),
        };
        Size { width, height }
    }

    /// Interleaved samples of the strip or tile at a place, in 8 bits, its width, and the samples
    /// of a pixel.
    fn tile(&mut self, place: u32) -> Result<(Vec<u8>, usize, usize), Error> {
        let width = self.decoder.chunk_data_dimensions(place).0 as usize;
        if !self.planar {
            return Ok((self.chunk(place, width * self.samples)?, width, self.samples));
        }
        let (across, down) = self.tiles();
        let planes = self.colour.samples();
        let mut pixels = Vec::new();
        for plane in 0..planes {
            let before = across * down * u32::try_from(plane).expect("at most 4");
            let samples = self.chunk(before + place, width)?;
            if plane == 0 {
                pixels = Error::filled(0, samples.len() * planes, "a tile")?;
            }
            let stored = pixels.iter_mut().skip(plane).step_by(planes);
            stored.zip(samples).for_each(|(stored, sample)| *stored = sample);
        }
        Ok((pixels, width, planes))
    }

    /// The samples of one of the file's chunks, `line` of them in a row, in 8 bits.
    fn chunk(&mut self, index: u32, line: usize) -> Result<Vec<u8>, Error> {
        match self.decoder.read_chunk(index).map_err(|error| convert(&error))? {
            DecodingResult::U8(packed) if self.depth < 8 => {
                let depth = usize::from(self.depth);
                let rows = packed.chunks_exact((line * depth).div_ceil(8));
                let scale = grey_scale(depth);
                Ok(rows.flat_map(|row| (0..line).map(|x| sample(row, x, depth) * scale)).collect())
            }
            DecodingResult::U8(samples) => Ok(samples),
            DecodingResult::U16(samples) => {
                Ok(samples.iter().map(|sample| sample.to_be_bytes()[0]).collect())
            }
            _ => Err(Error::internal("samples of another type than the tags say")),
        }
    }
}

/// All pixels, RGB.
pub(super) fn decode(bytes: &[u8], meta: &ImageMeta, stop: &Stop) -> Result<Vec<u8>, Error> {
    let mut opened = open(bytes, stop)?;
    if opened.size != meta.size {
        return Err(Error::internal(format!("probed {}, found another size", meta.size)));
    }
    let mut pixels = zeros(meta, 3)?;
    let (across, down) = opened.tiles();
    let line = 3 * meta.size.width as usize;
    for place in 0..across * down {
        let (stored, width, samples) = opened.tile(place)?;
        let left = 3 * (place % across * opened.tile.width) as usize;
        let top = (place / across * opened.tile.height) as usize;
        let rows = pixels.chunks_exact_mut(line).skip(top);
        for (out, stored) in rows.zip(stored.chunks_exact(width * samples)) {
            let out = &mut out[left..left + 3 * width];
            rgb(opened.colour, stored, samples, out);
        }
    }
    Ok(pixels)
}

/// A row of pixels of `samples` samples as RGB.
fn rgb(colour: Colour, stored: &[u8], samples: usize, out: &mut [u8]) {
    let pixels = out.chunks_exact_mut(3).zip(stored.chunks_exact(samples));
    match colour {
        Colour::Grey => pixels.for_each(|(out, stored)| out.fill(stored[0])),
        Colour::Rgb if samples == 3 => out.copy_from_slice(stored),
        Colour::Rgb => pixels.for_each(|(out, stored)| out.copy_from_slice(&stored[..3])),
        Colour::Premultiplied => pixels.for_each(|(out, stored)| {
            let alpha = u16::from(stored[3]);
            for (out, &stored) in out.iter_mut().zip(stored) {
                let colour = (255 * u16::from(stored)).checked_div(alpha).unwrap_or(0);
                *out = u8::try_from(colour).unwrap_or(u8::MAX);
            }
        }),
        Colour::Cmyk => pixels.for_each(|(out, stored)| {
            out.copy_from_slice(&rgb_from_inks([stored[0], stored[1], stored[2], stored[3]]));
        }),
    }
}

fn convert(error: &TiffError) -> Error {
    match error {
        TiffError::IoError(error) => read_error(Format::Tiff, error),
        TiffError::UnsupportedError(what) => Error::unsupported(match what {
            TiffUnsupportedError::UnsupportedCompressionMethod(method) => {
                format!("TIFF with {method:?} compression")
            }
            TiffUnsupportedError::InterpretationWithBits(kind, _) => {
                format!("TIFF with {kind:?} pixels")
            }
            other => format!("TIFF: {other}"),
        }),
        _ => Error::damaged(Format::Tiff, error.to_string()),
    }
}
