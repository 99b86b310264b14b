//! TIFF pixels of the first page, a strip or tile at a time: by the `tiff` crate, but for JPEG and
//! fax.
//!
//! Invariants: of 16 bits the high byte is taken, for grey too, where Pillow clips all above 255 to
//! white; what the crate would read wrong in silence is refused.

mod coded;
mod directory;
mod fax;
mod tags;

pub(crate) use tags::open;

use super::reader::Stoppable;
use super::{Channels, Stored, check_size, grey_scale, read_error, sample, zeros};
use crate::Error;
use crate::jpeg::rgb_from_inks;
use coded::{Coded, READ_AGAIN};
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
    Cmyk,
}

impl Colour {
    /// Of a pixel.
    fn samples(self) -> usize {
        match self {
            Self::Grey | Self::Indexed => 1,
            Self::Rgb => 3,
            Self::Cmyk => 4,
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
    /// Behind the colour.
    pub(crate) alpha: bool,
    /// Colours are multiplied by alpha, which is undone, as Pillow does.
    premultiplied: bool,
    colour: Colour,
    palette: Vec<[u8; 3]>,
    /// Of pixels that the crate does not read.
    coded: Option<Coded<'a>>,
    expansion: u64,
    /// Samples of a pixel that are read, unless they are planar.
    samples: usize,
    depth: u8,
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

    /// The part of the image that a strip or tile holds.
    fn data(&self, index: u32) -> Size {
        let (width, height) = self.decoder.chunk_data_dimensions(index);
        Size { width, height }
    }

    /// Bytes of a file with all of its pixels, even if strips share them.
    pub(crate) fn least_bytes(&self) -> u64 {
        let bits = u64::from(self.components) * u64::from(self.depth);
        let samples = self.size.pixels().saturating_mul(bits) / 8;
        samples / READ_AGAIN as u64 / self.expansion
    }

    /// Samples of a pixel that are read where each has a plane.
    fn planes(&self, channels: Channels) -> usize {
        let alpha = self.alpha && (self.premultiplied || channels != Channels::Rgb);
        self.colour.samples() + usize::from(alpha)
    }

    /// Channels of a pixel that comes out, and whether they have 16 bits.
    fn output(&self, channels: Channels) -> Result<(usize, bool), Error> {
        let alpha = usize::from(self.alpha);
        let wide = self.depth > 8;
        let refuse = |what| Err(Error::unsupported(format!("TIFF of {what} in mode UNCHANGED")));
        match channels {
            Channels::Rgb => Ok((3, false)),
            Channels::RgbAlpha => Ok((3 + alpha, false)),
            Channels::Stored if self.colour == Colour::Cmyk => refuse("four inks"),
            Channels::Stored if wide && self.premultiplied => {
                refuse("16 bits that are multiplied by alpha")
            }
            Channels::Stored => Ok((self.colour.samples() + alpha, wide)),
            Channels::First => Err(Error::internal("a mask of a TIFF")),
        }
    }

    /// The strip or tile at a place, of which each plane is a chunk of the file.
    fn tile(&mut self, place: u32, read: &mut Read<'_>) -> Result<Tile, Error> {
        let width = self.data(place).width as usize;
        if !self.planar {
            let line = width * self.samples;
            let chunks = vec![self.chunk(place, line, read)?];
            return Ok(Tile { chunks, width, samples: self.samples });
        }
        let (across, down) = self.tiles();
        let samples = self.planes(read.channels);
        let planes = (0..).take(samples);
        let chunks = planes.map(|plane| self.chunk(plane * across * down + place, width, read));
        Ok(Tile { chunks: chunks.collect::<Result<_, _>>()?, width, samples })
    }

    /// The samples of one of the file's chunks, `line` of them in a row.
    fn chunk(&mut self, index: u32, line: usize, read: &mut Read<'_>) -> Result<Samples, Error> {
        let depth = usize::from(self.depth);
        let scale = if self.colour == Colour::Indexed { 1 } else { grey_scale(depth) };
        if let Some(coded) = &self.coded {
            let (mut samples, warnings) =
                coded.samples(index, self.tile, self.data(index), read.limits, read.stop)?;
            for sample in &mut samples {
                *sample *= scale;
            }
            read.warnings = read.warnings.saturating_add(warnings);
            return Ok(Samples::Bytes(samples));
        }
        match self.decoder.read_chunk(index).map_err(|error| convert(&error))? {
            DecodingResult::U8(packed) if depth < 8 => {
                let rows = packed.chunks_exact((line * depth).div_ceil(8));
                let all = rows.flat_map(|row| (0..line).map(|x| sample(row, x, depth) * scale));
                Ok(Samples::Bytes(all.collect()))
            }
            DecodingResult::U8(samples) => Ok(Samples::Bytes(samples)),
            DecodingResult::U16(samples) => Ok(Samples::Words(samples)),
            _ => Err(Error::internal("samples of another type than the tags say")),
        }
    }

    /// Undoes that colours of a row of pixels of `samples` bytes were multiplied by alpha.
    fn divide(&self, row: &mut [u8], samples: usize) {
        for pixel in row.chunks_exact_mut(samples) {
            let (colours, behind) = pixel.split_at_mut(self.colour.samples());
            let alpha = u16::from(behind[0]);
            for colour in colours {
                let without = (255 * u16::from(*colour)).checked_div(alpha).unwrap_or(0);
                *colour = u8::try_from(without).unwrap_or(u8::MAX);
            }
        }
    }

    /// A row of pixels of `samples` samples as colour, with alpha if `out` has `channels` for it.
    fn paint(&self, stored: &[u8], samples: usize, out: &mut [u8], channels: usize) {
        let pixels = out.chunks_exact_mut(channels).zip(stored.chunks_exact(samples));
        match self.colour {
            Colour::Grey => pixels.for_each(|(out, stored)| out[..3].fill(stored[0])),
            Colour::Indexed => pixels.for_each(|(out, stored)| {
                out[..3].copy_from_slice(&self.palette[usize::from(stored[0])]);
            }),
            Colour::Rgb if samples == channels => out.copy_from_slice(stored),
            Colour::Rgb => pixels.for_each(|(out, stored)| out[..3].copy_from_slice(&stored[..3])),
            Colour::Cmyk => pixels.for_each(|(out, stored)| {
                out[..3]
                    .copy_from_slice(&rgb_from_inks([stored[0], stored[1], stored[2], stored[3]]));
            }),
        }
        if channels == 4 {
            let place = self.colour.samples();
            for (out, stored) in out.chunks_exact_mut(4).zip(stored.chunks_exact(samples)) {
                out[3] = stored[place];
            }
        }
    }
}

/// What the decoder made of a chunk, which may be the whole image: it is not copied as a whole.
enum Samples {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

impl Samples {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(samples) => samples.len(),
            Self::Words(samples) => samples.len(),
        }
    }

    /// Writes samples `from..` to places of `bytes` each, `step` of them apart; of 16 bits that
    /// become 8 the high byte.
    fn spread(&self, from: usize, bytes: usize, step: usize, places: &mut [u8]) {
        match self {
            Self::Bytes(samples) if step == 1 => {
                places.copy_from_slice(&samples[from..from + places.len()]);
            }
            Self::Bytes(samples) => {
                let places = places.iter_mut().step_by(step);
                places.zip(&samples[from..]).for_each(|(place, &sample)| *place = sample);
            }
            Self::Words(samples) if bytes == 1 => {
                let places = places.iter_mut().step_by(step);
                for (place, sample) in places.zip(&samples[from..]) {
                    *place = sample.to_be_bytes()[0];
                }
            }
            Self::Words(samples) => {
                let places = places.as_chunks_mut::<2>().0.iter_mut().step_by(step);
                for (place, sample) in places.zip(&samples[from..]) {
                    *place = sample.to_ne_bytes();
                }
            }
        }
    }
}

/// A strip or tile: a chunk, or one for each sample of a pixel.
struct Tile {
    chunks: Vec<Samples>,
    width: usize,
    /// Of a pixel.
    samples: usize,
}

impl Tile {
    /// Samples of a row of a chunk.
    fn line(&self) -> usize {
        self.width * self.samples / self.chunks.len()
    }

    fn rows(&self) -> usize {
        let shortest = self.chunks.iter().map(Samples::len).min().unwrap_or(0);
        shortest / self.line()
    }

    /// Interleaves a row of samples of `bytes` each.
    fn row(&self, number: usize, bytes: usize, row: &mut [u8]) {
        let (line, step) = (self.line(), self.chunks.len());
        for (plane, chunk) in self.chunks.iter().enumerate() {
            chunk.spread(number * line, bytes, step, &mut row[plane * bytes..]);
        }
    }
}

/// Around the reading of strips and tiles.
struct Read<'a> {
    limits: &'a Limits,
    stop: &'a Stop,
    channels: Channels,
    /// About damage that was worked around.
    warnings: u32,
}

/// All pixels, and warnings about damage.
pub(super) fn decode(
    bytes: &[u8],
    meta: &ImageMeta,
    channels: Channels,
    limits: &Limits,
    stop: &Stop,
) -> Result<(Stored, u32), Error> {
    let mut opened = open(bytes, stop)?;
    check_size(meta, opened.size)?;
    let (count, wide) = opened.output(channels)?;
    let (across, down) = opened.tiles();
    if let Some(coded) = &opened.coded {
        let planes = if opened.planar { opened.planes(channels) } else { 1 };
        for index in 0..across * down * u32::try_from(planes).expect("at most 5") {
            coded.probe(index, opened.tile, opened.data(index), limits, stop)?;
        }
    }
    let mut read = Read { limits, stop, channels, warnings: 0 };
    let bytes = 1 + usize::from(wide);
    let pixel = count * bytes;
    let mut pixels = zeros(meta, pixel)?;
    let mut stored = Vec::new();
    for place in 0..across * down {
        let tile = opened.tile(place, &mut read)?;
        let left = pixel * (place % across * opened.tile.width) as usize;
        let top = (place / across * opened.tile.height) as usize;
        let rows = pixels.chunks_exact_mut(pixel * meta.size.width as usize).skip(top);
        let stored_pixel = tile.samples * bytes;
        stored.resize(tile.width * stored_pixel, 0);
        for (number, out) in rows.take(tile.rows()).enumerate() {
            tile.row(number, bytes, &mut stored);
            if opened.premultiplied {
                opened.divide(&mut stored, tile.samples);
            }
            let out = &mut out[left..left + pixel * tile.width];
            if channels == Channels::Stored {
                let stored = stored.chunks_exact(stored_pixel);
                for (out, stored) in out.chunks_exact_mut(pixel).zip(stored) {
                    out.copy_from_slice(&stored[..pixel]);
                }
            } else {
                opened.paint(&stored, tile.samples, out, count);
            }
        }
    }
    let channels = u8::try_from(count).expect("at most 5");
    Ok((Stored { channels, wide, pixels }, read.warnings))
}

fn convert(error: &TiffError) -> Error {
    match error {
        TiffError::IoError(error) => read_error(Format::Tiff, error),
        // The limits are what the file and its pixels can hold.
        TiffError::LimitsExceeded => {
            Error::truncated("a strip, a tile or a value is longer than the file")
        }
        TiffError::UnsupportedError(what) => Error::unsupported(match what {
            TiffUnsupportedError::UnknownInterpretation => {
                "TIFF with samples that its photometric interpretation does not have".to_owned()
            }
            TiffUnsupportedError::InterpretationWithBits(kind, _) => {
                format!("TIFF with {kind:?} pixels")
            }
            other => format!("TIFF: {other}"),
        }),
        _ => Error::damaged(Format::Tiff, error.to_string()),
    }
}
