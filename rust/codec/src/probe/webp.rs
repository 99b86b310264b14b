//! WebP chunks: where the first image is, and what stands beside it.

use super::{check_size, exif};
use crate::Error;
use forebay_core::{Format, ImageMeta, Limits, Orientation, Size};

/// Flags of the VP8X chunk.
const ANIMATED: u8 = 0x02;
const EXIF: u8 = 0x08;
pub(crate) const ALPHA: u8 = 0x10;
/// Position, size, duration and flags in front of an animated image's chunks.
const FRAME_HEADER: usize = 16;

/// The first image of a file.
pub(crate) struct Picture<'a> {
    canvas: Size,
    /// Its place on the canvas.
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) size: Size,
    /// `VP8 ` or `VP8L`.
    pub(crate) kind: [u8; 4],
    pub(crate) bitstream: &'a [u8],
    pub(crate) alpha: bool,
    /// The alpha of a `VP8 ` image; one of `VP8L` has its own.
    pub(crate) alpha_chunk: Option<&'a [u8]>,
    orientation: Orientation,
}

pub(super) fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageMeta, Error> {
    let picture = Picture::find(bytes)?;
    check_size(picture.canvas, limits)?;
    Ok(ImageMeta {
        format: Format::WebP,
        size: picture.canvas,
        orientation: picture.orientation,
        components: if picture.alpha { 4 } else { 3 },
        progressive: false,
        baseline: None,
        restarts: false,
        bytes: bytes.len(),
    })
}

impl<'a> Picture<'a> {
    /// Reads the chunks of a whole file.
    pub(crate) fn find(bytes: &'a [u8]) -> Result<Self, Error> {
        let Some((&[_, _, _, _, s0, s1, s2, s3, _, _, _, _], rest)) = bytes.split_first_chunk()
        else {
            return Err(Error::truncated(format!("{} bytes", bytes.len())));
        };
        let length = u32::from_le_bytes([s0, s1, s2, s3]) as usize;
        let chunks = length.checked_sub(4).ok_or_else(|| damaged("RIFF chunk too short"))?;
        let rest =
            rest.get(..chunks).ok_or_else(|| Error::truncated("no end of the RIFF chunk"))?;
        match (Chunks { rest }).next() {
            Some((kind, header)) if &kind == b"VP8X" => Self::extended(header, rest),
            Some(_) => {
                let (kind, bitstream) = bitstream(rest)?;
                let (size, alpha) = bitstream_size(kind, bitstream)?;
                Ok(Self {
                    canvas: size,
                    x: 0,
                    y: 0,
                    size,
                    kind,
                    bitstream,
                    alpha,
                    alpha_chunk: None,
                    orientation: Orientation::default(),
                })
            }
            None => Err(damaged("no chunk")),
        }
    }

    fn extended(header: &'a [u8], chunks: &'a [u8]) -> Result<Self, Error> {
        let &[flags, _, _, _, w0, w1, w2, h0, h1, h2, ..] = header else {
            return Err(damaged("VP8X chunk too short"));
        };
        let canvas = Size { width: 1 + long([w0, w1, w2]), height: 1 + long([h0, h1, h2]) };
        let find = |name: &[u8; 4]| Chunks { rest: chunks }.find(|(kind, _)| kind == name);
        let exif = find(b"EXIF").filter(|_| flags & EXIF != 0);
        let orientation = exif
            .map(|(_, block)| exif::orientation(block.strip_prefix(b"Exif\0\0").unwrap_or(block)));
        let mut picture = Self {
            canvas,
            x: 0,
            y: 0,
            size: canvas,
            kind: *b"VP8 ",
            bitstream: &[],
            alpha: flags & ALPHA != 0,
            alpha_chunk: None,
            orientation: orientation.unwrap_or_default(),
        };
        let mut inner = chunks;
        if flags & ANIMATED != 0 {
            let (_, frame) = find(b"ANMF").ok_or_else(|| damaged("no frame"))?;
            let Some((header, rest)) = frame.split_first_chunk::<FRAME_HEADER>() else {
                return Err(damaged("ANMF chunk too short"));
            };
            let &[x0, x1, x2, y0, y1, y2, w0, w1, w2, h0, h1, h2, ..] = header;
            (picture.x, picture.y) = (2 * long([x0, x1, x2]), 2 * long([y0, y1, y2]));
            picture.size = Size { width: 1 + long([w0, w1, w2]), height: 1 + long([h0, h1, h2]) };
            inner = rest;
        }
        (picture.kind, picture.bitstream) = bitstream(inner)?;
        picture.alpha_chunk = Chunks { rest: inner }
            .take_while(|(kind, _)| *kind != picture.kind)
            .find_map(|(kind, content)| (&kind == b"ALPH").then_some(content))
            .filter(|_| &picture.kind == b"VP8 ");
        let (size, own_alpha) = bitstream_size(picture.kind, picture.bitstream)?;
        picture.alpha |= own_alpha;
        let fits =
            picture.x + size.width <= canvas.width && picture.y + size.height <= canvas.height;
        if size != picture.size || !fits {
            return Err(damaged("sizes that contradict each other"));
        }
        Ok(picture)
    }
}

/// The first image among chunks.
fn bitstream(chunks: &[u8]) -> Result<([u8; 4], &[u8]), Error> {
    Chunks { rest: chunks }
        .find(|(kind, _)| matches!(kind, b"VP8 " | b"VP8L"))
        .ok_or_else(|| damaged("no image chunk"))
}

/// Size and use of alpha as the image itself declares them.
fn bitstream_size(kind: [u8; 4], bitstream: &[u8]) -> Result<(Size, bool), Error> {
    const SIDE: u32 = 0x3fff;
    let (size, alpha) = match (&kind, bitstream) {
        (b"VP8 ", &[_, _, _, 0x9d, 0x01, 0x2a, w0, w1, h0, h1, ..]) => {
            let side = |low, high| u32::from(u16::from_le_bytes([low, high])) & SIDE;
            (Size { width: side(w0, w1), height: side(h0, h1) }, false)
        }
        (b"VP8L", &[0x2f, b0, b1, b2, b3, ..]) => {
            let bits = u32::from_le_bytes([b0, b1, b2, b3]);
            let size = Size { width: 1 + (bits & SIDE), height: 1 + (bits >> 14 & SIDE) };
            (size, bits >> 28 & 1 == 1)
        }
        _ => return Err(damaged("bad image header")),
    };
    if size.pixels() == 0 { Err(damaged(format!("size {size}"))) } else { Ok((size, alpha)) }
}

fn long([low, middle, high]: [u8; 3]) -> u32 {
    u32::from_le_bytes([low, middle, high, 0])
}

fn damaged(what: impl Into<String>) -> Error {
    Error::damaged(Format::WebP, what)
}

/// Kinds and contents of the chunks that are there whole.
struct Chunks<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Chunks<'a> {
    type Item = ([u8; 4], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (kind, rest) = self.rest.split_first_chunk::<4>()?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let (content, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        // Contents of odd length are followed by a byte, which some encoders leave out at the end.
        self.rest = rest.get(content.len() % 2..).unwrap_or_default();
        Some((*kind, content))
    }
}
