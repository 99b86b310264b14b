//! JPEG markers from SOI to EOI, read without decoding.
//!
//! Invariants: the verdict on the markers is the same whatever part of the image is decoded later
//! (ERR-2); every byte is looked at once.

use super::sampling::{ColourMarkers, sampling};
use super::{check_size, exif, tables};
use crate::Error;
use forebay_core::{Format, ImageMeta, Limits, Orientation, Size};

const TEM: u8 = 0x01;
const SOF_FIRST: u8 = 0xc0;
pub(super) const DHT: u8 = 0xc4;
const JPG: u8 = 0xc8;
pub(super) const DAC: u8 = 0xcc;
const RST_FIRST: u8 = 0xd0;
const RST_LAST: u8 = 0xd7;
const SOI: u8 = 0xd8;
const EOI: u8 = 0xd9;
const SOS: u8 = 0xda;
pub(super) const DQT: u8 = 0xdb;
const DNL: u8 = 0xdc;
pub(super) const DRI: u8 = 0xdd;
const APP0: u8 = 0xe0;
const APP1: u8 = 0xe1;
const APP_LAST: u8 = 0xef;
const COM: u8 = 0xfe;

/// Scans of one image, at most: libjpeg's own examples stop at 500, encoders write about 10. This and
/// the next grow with the limit of pixels.
const MAX_SCANS: u64 = 1000;
/// Scans of large images are bounded by their work: every scan visits every block, even where the
/// file spends no bit on it. By default 4e9 visited pixels, about 2 s of empty progressive scans.
const SCANNED_PER_PIXEL: u64 = 22;
/// This many scans are always accepted.
const MIN_SCAN_ALLOWANCE: u64 = 20;
/// Arithmetic decoding makes up to 64 decisions a block where Huffman codes skip it, so its scans
/// weigh more; encoders write 10 of them.
const ARITHMETIC_WEIGHT: u64 = 4;
const MIN_ARITHMETIC_ALLOWANCE: u64 = 10;

/// What the markers seen so far say.
#[derive(Default)]
struct Seen {
    frame: Option<Frame>,
    orientation: Option<Orientation>,
    scans: u32,
    restarts: bool,
    colours: ColourMarkers,
    /// The first scan has the whole image: libjpeg takes no other.
    complete: bool,
    /// And its components in the frame's order: libjpeg takes no other, either.
    in_order: bool,
}

#[derive(Clone, Copy)]
struct Frame {
    size: Size,
    components: u8,
    /// Id, factors and quantisation of each component, if it is a baseline frame of three.
    baseline: Option<[u8; 9]>,
    progressive: bool,
    arithmetic: bool,
    /// Of a scan of all components.
    blocks: u64,
}

pub(super) fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageMeta, Error> {
    let mut seen = Seen::default();
    match scan(bytes, limits, &mut seen) {
        Err(Error::Truncated { .. }) if limits.accept_truncated && seen.scans > 0 => {}
        other => other?,
    }
    let frame = seen.frame.ok_or_else(|| Error::jpeg("no frame header"))?;
    if seen.scans == 0 {
        return Err(Error::jpeg("no scan"));
    }
    Ok(ImageMeta {
        format: Format::Jpeg,
        size: frame.size,
        orientation: seen.orientation.unwrap_or_default(),
        components: frame.components,
        progressive: frame.progressive || seen.scans > 1,
        baseline: frame
            .baseline
            .filter(|_| seen.scans == 1 && seen.in_order && fits_libjpeg(frame.size))
            .and_then(|table| sampling(&table, seen.colours)),
        restarts: seen.restarts,
        bytes: bytes.len(),
    })
}

/// Whether libjpeg takes sides of such lengths (`JPEG_MAX_DIMENSION`).
fn fits_libjpeg(size: Size) -> bool {
    size.width.max(size.height) <= 65_500
}

/// Reads markers to EOI.
fn scan(bytes: &[u8], limits: &Limits, seen: &mut Seen) -> Result<(), Error> {
    let mut at = 2;
    loop {
        let (marker, body) = next_marker(bytes, at)?;
        match marker {
            EOI => return Ok(()),
            TEM | RST_FIRST..=RST_LAST => {
                at = body;
                continue;
            }
            SOI => return Err(Error::jpeg("second start of image")),
            _ => {}
        }
        let (segment, next) = segment(bytes, body)?;
        at = next;
        if seen.complete {
            // Before a scan libjpeg reads tables for every decode, behind the last for none.
            tables::check(marker, segment)?;
        }
        match marker {
            SOF_FIRST..=0xcf if !matches!(marker, DHT | JPG | DAC) => {
                if seen.frame.is_some() {
                    return Err(Error::jpeg("second frame header"));
                }
                seen.frame = Some(frame(marker, segment, limits)?);
            }
            SOS => {
                at = start_scan(bytes, at, segment, limits, seen)?;
            }
            DRI => seen.restarts = segment.len() == 2 && segment != [0, 0],
            APP1 if seen.orientation.is_none() => {
                seen.orientation = segment.strip_prefix(b"Exif\0\0").map(exif::orientation);
            }
            // libjpeg has chosen the colours when the first scan begins.
            APP0..=APP_LAST if seen.scans == 0 => seen.colours.see(marker - APP0, segment),
            APP0..=APP_LAST | DHT | DAC | DQT | DNL | COM => {}
            _ => return Err(Error::jpeg(format!("unknown marker 0x{marker:02x}"))),
        }
    }
}

/// The next marker and the position behind it; bytes that are none are passed over, as libjpeg does.
fn next_marker(bytes: &[u8], mut at: usize) -> Result<(u8, usize), Error> {
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(found) = memchr::memchr(0xff, rest) else {
            return Err(no_eoi());
        };
        at += found + 1;
        while bytes.get(at) == Some(&0xff) {
            at += 1;
        }
        match bytes.get(at) {
            None => return Err(no_eoi()),
            Some(0) => at += 1,
            Some(&marker) => return Ok((marker, at + 1)),
        }
    }
}

fn no_eoi() -> Error {
    Error::truncated("no end of image")
}

/// The content of the segment whose length stands at `at`, and the position behind it.
fn segment(bytes: &[u8], at: usize) -> Result<(&[u8], usize), Error> {
    let too_short = || Error::truncated("the file ends inside a marker segment");
    let length = bytes.get(at..at + 2).ok_or_else(too_short)?;
    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
    if length < 2 {
        return Err(Error::jpeg(format!("marker segment of length {length}")));
    }
    let content = bytes.get(at + 2..at + length).ok_or_else(too_short)?;
    Ok((content, at + length))
}

fn frame(marker: u8, segment: &[u8], limits: &Limits) -> Result<Frame, Error> {
    let &[precision, h1, h0, w1, w0, components, ref table @ ..] = segment else {
        return Err(Error::jpeg("frame header too short"));
    };
    let kind = match marker {
        0xc3 => "lossless JPEG",
        0xc5..=0xc7 => "hierarchical JPEG",
        0xcb => "lossless arithmetic-coded JPEG",
        0xcd..=0xcf => "hierarchical arithmetic-coded JPEG",
        _ => "",
    };
    if !kind.is_empty() {
        return Err(Error::unsupported(kind));
    }
    if precision != 8 {
        return Err(Error::unsupported(format!("{precision}-bit JPEG")));
    }
    let size = Size {
        width: u32::from(u16::from_be_bytes([w1, w0])),
        height: u32::from(u16::from_be_bytes([h1, h0])),
    };
    if size.width == 0 {
        return Err(Error::jpeg("width 0"));
    }
    if size.height == 0 {
        return Err(Error::unsupported("JPEG of undeclared height"));
    }
    if table.len() != 3 * usize::from(components) {
        return Err(Error::jpeg("frame header of wrong length"));
    }
    if !matches!(components, 1 | 3 | 4) {
        return Err(Error::unsupported(format!("{components}-component JPEG")));
    }
    let sampled =
        |factors: u8| (1..=4).contains(&(factors >> 4)) && (1..=4).contains(&(factors & 15));
    if !table.chunks_exact(3).all(|component| sampled(component[1])) {
        return Err(Error::jpeg("sampling factor outside 1..4"));
    }
    check_size(size, limits)?;
    let (progressive, arithmetic) = (matches!(marker, 0xc2 | 0xca), marker > JPG);
    let baseline = (marker == SOF_FIRST).then(|| table.try_into().ok()).flatten();
    let blocks = blocks(size, table);
    Ok(Frame { size, components, baseline, progressive, arithmetic, blocks })
}

/// Blocks of a scan of all components, of which one alone is not padded to MCUs (A.2 of the JPEG
/// standard).
fn blocks(size: Size, table: &[u8]) -> u64 {
    let mut factors: Vec<(u32, u32)> =
        table.chunks_exact(3).map(|of| (u32::from(of[1] >> 4), u32::from(of[1] & 15))).collect();
    if let [alone] = &mut factors[..] {
        *alone = (1, 1);
    }
    let across = factors.iter().map(|(across, _)| *across).max().unwrap_or(1);
    let down = factors.iter().map(|(_, down)| *down).max().unwrap_or(1);
    let mcu: u32 = factors.iter().map(|(across, down)| across * down).sum();
    let mcus =
        u64::from(size.width.div_ceil(8 * across)) * u64::from(size.height.div_ceil(8 * down));
    mcus * u64::from(mcu)
}

/// Counts a scan and passes over its entropy-coded data; returns the position of the next marker.
fn start_scan(
    bytes: &[u8],
    at: usize,
    segment: &[u8],
    limits: &Limits,
    seen: &mut Seen,
) -> Result<usize, Error> {
    let Some(frame) = seen.frame else {
        return Err(Error::jpeg("scan before the frame header"));
    };
    if seen.complete {
        return Err(Error::jpeg("Didn't expect more than one scan"));
    }
    seen.scans += 1;
    let all = segment.first() == Some(&frame.components);
    seen.complete = seen.scans == 1 && all && !frame.progressive;
    seen.in_order = frame.baseline.is_some_and(|table| {
        let ids = [table[0], table[3], table[6]];
        segment.len() > 6 && [segment[1], segment[3], segment[5]] == ids
    });
    let (weight, least) = if frame.arithmetic {
        (ARITHMETIC_WEIGHT, MIN_ARITHMETIC_ALLOWANCE)
    } else {
        (1, MIN_SCAN_ALLOWANCE)
    };
    let size = frame.size;
    let most = MAX_SCANS.saturating_mul(limits.max_pixels.div_ceil(Limits::DEFAULT_MAX_PIXELS));
    let scanned = limits.max_pixels.saturating_mul(SCANNED_PER_PIXEL);
    let allowed = (scanned / weight / size.pixels()).clamp(least, most);
    if u64::from(seen.scans) > allowed {
        return Err(Error::TooManyScans { size, allowed });
    }
    let end = skip_entropy_data(bytes, at, seen.restarts)?;
    let bits = 8 * (end - at) as u64;
    // A block is two codes at least, of a bit at least.
    if seen.complete && !frame.arithmetic && bits < 2 * frame.blocks {
        return Err(Error::truncated(format!("{} bytes of data for {size} pixels", end - at)));
    }
    Ok(end)
}

/// The position of the first marker that ends a scan's data: neither stuffing, nor a restart, nor
/// (where restarts let libjpeg find its way again) a reserved code.
fn skip_entropy_data(bytes: &[u8], mut at: usize, restarts: bool) -> Result<usize, Error> {
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        let Some(found) = memchr::memchr(0xff, rest) else {
            return Err(no_eoi());
        };
        at += found;
        match bytes.get(at + 1) {
            None => return Err(no_eoi()),
            Some(0xff) => at += 1,
            Some(0 | RST_FIRST..=RST_LAST) => at += 2,
            Some(TEM..SOF_FIRST) if restarts => at += 2,
            Some(_) => return Ok(at),
        }
    }
}
