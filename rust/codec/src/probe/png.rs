//! PNG chunks: IHDR, eXIf wherever it stands, and how much data there is.

use super::{check_size, exif};
use crate::Error;
use forebay_core::{Format, ImageMeta, Limits, Orientation, Size};

pub(super) const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";

/// The most bytes that DEFLATE makes of one: copies of 258 bytes by codes of two bits in all.
const LARGEST_RATIO: u64 = 1032;

pub(super) fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageMeta, Error> {
    let mut chunks = Chunks { rest: &bytes[SIGNATURE.len()..] };
    let header = match chunks.next() {
        Some((b"IHDR", content)) => content,
        Some(_) => return Err(Error::png("IHDR is not first")),
        None => return Err(Error::truncated("no IHDR")),
    };
    let Header { size, components, bits } = parse_header(header)?;
    check_size(size, limits)?;
    let mut orientation = None;
    let mut ended = false;
    let mut data = 0;
    for (kind, content) in chunks {
        match kind {
            b"eXIf" if orientation.is_none() => orientation = Some(exif::orientation(content)),
            b"IDAT" => data += content.len() as u64,
            b"IEND" => {
                ended = true;
                break;
            }
            _ => {}
        }
    }
    if !ended && !limits.accept_truncated {
        return Err(Error::truncated("no IEND"));
    }
    if size.pixels() * bits / 8 > data.saturating_mul(LARGEST_RATIO) && !limits.accept_truncated {
        return Err(Error::truncated(format!("{data} bytes of data for {size} pixels")));
    }
    Ok(ImageMeta {
        format: Format::Png,
        size,
        orientation: orientation.unwrap_or_else(Orientation::default),
        components,
        progressive: false,
        baseline: None,
        restarts: false,
        bytes: bytes.len(),
    })
}

/// Whether palette entries or one colour are transparent; such a chunk counts before the pixels.
pub(super) fn has_trns(bytes: &[u8]) -> bool {
    let rest = bytes.get(SIGNATURE.len()..).unwrap_or_default();
    Chunks { rest }.take_while(|(kind, _)| *kind != b"IDAT").any(|(kind, _)| kind == b"tRNS")
}

struct Header {
    size: Size,
    components: u8,
    /// Of a pixel.
    bits: u64,
}

fn parse_header(header: &[u8]) -> Result<Header, Error> {
    let &[w3, w2, w1, w0, h3, h2, h1, h0, depth, colour, ..] = header else {
        return Err(Error::png("IHDR too short"));
    };
    let size = Size {
        width: u32::from_be_bytes([w3, w2, w1, w0]),
        height: u32::from_be_bytes([h3, h2, h1, h0]),
    };
    let largest = i32::MAX.unsigned_abs();
    if !(1..=largest).contains(&size.width) || !(1..=largest).contains(&size.height) {
        return Err(Error::png(format!("size {size}")));
    }
    let components = match (colour, depth) {
        (0, 1 | 2 | 4 | 8 | 16) => 1,
        (2, 8 | 16) | (3, 1 | 2 | 4 | 8) => 3,
        (4, 8 | 16) => 2,
        (6, 8 | 16) => 4,
        _ => return Err(Error::png(format!("colour type {colour} with {depth} bits"))),
    };
    let samples = if colour == 3 { 1 } else { components };
    Ok(Header { size, components, bits: u64::from(samples) * u64::from(depth) })
}

/// Kinds and contents of the chunks that the file holds whole.
struct Chunks<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Chunks<'a> {
    type Item = (&'a [u8; 4], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (length, rest) = self.rest.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first_chunk::<4>()?;
        let (content, rest) =
            rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
        let (_checksum, rest) = rest.split_first_chunk::<4>()?;
        self.rest = rest;
        Some((kind, content))
    }
}
