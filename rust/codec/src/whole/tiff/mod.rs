//! TIFF pixels of the first page, a strip or tile at a time: by the `tiff` crate, but for JPEG and
//! fax.
//!
//! Invariants: of 16 bits the high byte is taken, for grey too, where Pillow clips all above 255 to
//! white; what the crate would read wrong in silence is refused.

mod coded;
mod fax;
mod tags;

pub(crate) use tags::open;

use super::reader::Stoppable;
use super::{Channels, grey_scale, read_error, sample, zeros};
use crate::Error;
use crate::jpeg::rgb_from_inks;
use coded::Coded;
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Limits, Orientation, Size};
use tiff::decoder::{ChunkType, Decoder, DecodingResult};
use tiff::{TiffError, TiffUnsupportedError};

/// What a pixel is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colour {
    Grey,
    /// A number of the palette.
    Indexed,
    Rgb,
    /// Colour that is multiplied by the alpha behind it, which Pillow undoes.
    Premultiplied,
    Cmyk,
}

impl Colour {
    /// Samples that are read.
    fn samples(self) -> usize {
        match self {
            Self::Grey | Self::Indexed => 1,
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
    palette: Vec<[u8; 3]>,
    /// Of pixels that the crate does not read.
    coded: Option<Coded<'a>>,
    /// Samples of a pixel that are read, unless they are planar.
    samples: usize,
    pub(crate) depth: u8,
    planar: bool,
    /// Strips are tiles of the image's width.
    tile: Size,
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

    /// Whether pixels are numbers of a palette.
    pub(crate) fn indexed(&self) -> bool {
        self.colour == Colour::Indexed
    }

    /// The part of the image that a strip or tile holds.
    fn data(&self, index: u32) -> Size {
        let (width, height) = self.decoder.chunk_data_dimensions(index);
        Size { width, height }
    }

    /// Strips and tiles that are read.
    fn chunks(&self) -> u32 {
        let (across, down) = self.tiles();
        let planes = if self.planar { self.colour.samples() } else { 1 };
        across * down * u32::try_from(planes).expect("at most 4")
    }

    /// Interleaved samples of the strip or tile at a place, in 8 bits, its width, and the samples
    /// of a pixel.
    fn tile(&mut self, place: u32, read: &mut Read<'_>) -> Result<(Vec<u8>, usize, usize), Error> {
        let width = self.data(place).width as usize;
        if !self.planar {
            return Ok((self.chunk(place, width * self.samples, read)?, width, self.samples));
        }
        let (across, down) = self.tiles();
        let planes = self.colour.samples();
        let mut pixels = Vec::new();
        for plane in 0..planes {
            let before = across * down * u32::try_from(plane).expect("at most 4");
            let samples = self.chunk(before + place, width, read)?;
            if plane == 0 {
                pixels = Error::filled(0, samples.len() * planes, "a tile")?;
            }
            let stored = pixels.iter_mut().skip(plane).step_by(planes);
            stored.zip(samples).for_each(|(stored, sample)| *stored = sample);
        }
        Ok((pixels, width, planes))
    }

    /// The samples of one of the file's chunks, `line` of them in a row, in 8 bits.
    fn chunk(&mut self, index: u32, line: usize, read: &mut Read<'_>) -> Result<Vec<u8>, Error> {
        let depth = usize::from(self.depth);
        let scale = if self.indexed() { 1 } else { grey_scale(depth) };
        if let Some(coded) = &self.coded {
            let (mut samples, warnings) =
                coded.samples(index, self.tile, self.data(index), read.limits, read.stop)?;
            for sample in &mut samples {
                *sample *= scale;
            }
            read.warnings = read.warnings.saturating_add(warnings);
            return Ok(samples);
        }
        match self.decoder.read_chunk(index).map_err(|error| convert(&error))? {
            DecodingResult::U8(packed) if depth < 8 => {
                let rows = packed.chunks_exact((line * depth).div_ceil(8));
                Ok(rows.flat_map(|row| (0..line).map(|x| sample(row, x, depth) * scale)).collect())
            }
            DecodingResult::U8(samples) => Ok(samples),
            DecodingResult::U16(samples) => {
                Ok(samples.iter().map(|sample| sample.to_be_bytes()[0]).collect())
            }
            _ => Err(Error::internal("samples of another type than the tags say")),
        }
    }

    /// A row of pixels of `samples` samples as RGB.
    fn rgb(&self, stored: &[u8], samples: usize, out: &mut [u8]) {
        let pixels = out.chunks_exact_mut(3).zip(stored.chunks_exact(samples));
        match self.colour {
            Colour::Grey => pixels.for_each(|(out, stored)| out.fill(stored[0])),
            Colour::Indexed => pixels.for_each(|(out, stored)| {
                out.copy_from_slice(&self.palette[usize::from(stored[0])]);
            }),
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
}

/// Around the reading of strips and tiles.
struct Read<'a> {
    limits: &'a Limits,
    stop: &'a Stop,
    /// About damage that was worked around.
    warnings: u32,
}

/// All pixels, RGB or, of a palette, its numbers; and warnings about damage.
pub(super) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    limits: &Limits,
    stop: &Stop,
) -> Result<(Vec<u8>, u32), Error> {
    let mut opened = open(bytes, stop)?;
    if opened.size != meta.size {
        return Err(Error::internal(format!("probed {}, found another size", meta.size)));
    }
    if let Some(coded) = &opened.coded {
        for index in 0..opened.chunks() {
            coded.probe(index, opened.tile, opened.data(index), limits, stop)?;
        }
    }
    let mut pixels = zeros(meta, channels.count())?;
    let mut read = Read { limits, stop, warnings: 0 };
    let (across, down) = opened.tiles();
    let line = channels.count() * meta.size.width as usize;
    for place in 0..across * down {
        let (stored, width, samples) = opened.tile(place, &mut read)?;
        let left = channels.count() * (place % across * opened.tile.width) as usize;
        let top = (place / across * opened.tile.height) as usize;
        let rows = pixels.chunks_exact_mut(line).skip(top);
        for (out, stored) in rows.zip(stored.chunks_exact(width * samples)) {
            let out = &mut out[left..left + channels.count() * width];
            match channels {
                Channels::Rgb => opened.rgb(stored, samples, out),
                Channels::First => {
                    let first = stored.iter().step_by(samples);
                    out.iter_mut().zip(first).for_each(|(out, &first)| *out = first);
                }
            }
        }
    }
    Ok((pixels, read.warnings))
}

fn convert(error: &TiffError) -> Error {
    match error {
        TiffError::IoError(error) => read_error(Format::Tiff, error),
        TiffError::UnsupportedError(what) => Error::unsupported(match what {
            TiffUnsupportedError::InterpretationWithBits(kind, _) => {
                format!("TIFF with {kind:?} pixels")
            }
            other => format!("TIFF: {other}"),
        }),
        _ => Error::damaged(Format::Tiff, error.to_string()),
    }
}
