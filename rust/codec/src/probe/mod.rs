//! Headers: which format the bytes are, and what an image's markers or chunks declare.
//!
//! Invariants: the format is decided by content, never by name; the size is checked against the
//! limits before memory is taken; a JPEG's markers are read to EOI (ERR-2); any bytes give an
//! answer in time linear in their number.

mod exif;
mod jpeg;
mod png;
mod sampling;
mod tables;

pub(crate) use jpeg::MAX_SCANS;

use crate::Error;
use forebay_core::{Format, ImageMeta, Limits, Size};

/// Reads the header of an encoded image, within the limits.
///
/// # Errors
/// The bytes are not an image, of a kind that is not decoded, damaged, truncated or too large.
///
/// ```
/// use forebay_core::Limits;
/// let error = forebay_codec::probe(b"GIF89a...", &Limits::default()).unwrap_err();
/// assert_eq!(error.to_string(), "GIF is not decoded");
/// ```
pub fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageMeta, Error> {
    match format_of(bytes)? {
        Format::Jpeg => jpeg::probe(bytes, limits),
        Format::Png => png::probe(bytes, limits),
    }
}

/// Whether the image of these bytes, which `probe` has read as `meta`, has transparency: an alpha
/// channel, or a PNG's tRNS chunk.
pub fn transparent(bytes: &[u8], meta: &ImageMeta) -> bool {
    meta.format == Format::Png && (matches!(meta.components, 2 | 4) || png::has_trns(bytes))
}

fn format_of(bytes: &[u8]) -> Result<Format, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    if bytes.starts_with(&[0xff, 0xd8, 0xff]) {
        return Ok(Format::Jpeg);
    }
    if bytes.starts_with(png::SIGNATURE) {
        return Ok(Format::Png);
    }
    if png::SIGNATURE.starts_with(bytes) || [0xff, 0xd8, 0xff].starts_with(bytes) {
        return Err(Error::truncated(format!("{} bytes", bytes.len())));
    }
    match other_format(bytes) {
        Some(name) => Err(Error::unsupported(name)),
        None => Err(Error::NotAnImage { start: readable_start(bytes) }),
    }
}

/// The name of an image format that we recognise without decoding it.
fn other_format(bytes: &[u8]) -> Option<&'static str> {
    let at = |offset: usize, magic: &[u8]| {
        bytes.get(offset..).is_some_and(|rest| rest.starts_with(magic))
    };
    if at(0, b"RIFF") && at(8, b"WEBP") {
        return Some("WebP");
    }
    if at(4, b"ftyp") {
        return match bytes.get(8..12)? {
            b"avif" | b"avis" => Some("AVIF"),
            b"heic" | b"heix" | b"hevc" | b"hevx" | b"heim" | b"heis" | b"mif1" | b"msf1" => {
                Some("HEIC")
            }
            _ => None,
        };
    }
    let magics: [(&[u8], &str); 11] = [
        (b"GIF87a", "GIF"),
        (b"GIF89a", "GIF"),
        (b"BM", "BMP"),
        (b"II\x2a\0", "TIFF"),
        (b"MM\0\x2a", "TIFF"),
        (b"II\x2b\0", "BigTIFF"),
        (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
        (b"\xff\x4f\xff\x51", "JPEG 2000"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
        (b"\xff\x0a", "JPEG XL"),
        (b"8BPS", "Photoshop document"),
    ];
    magics.iter().find(|(magic, _)| at(0, magic)).map(|&(_, name)| name)
}

fn readable_start(bytes: &[u8]) -> String {
    let start = &bytes[..bytes.len().min(8)];
    if start.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ') {
        return format!("{:?}", String::from_utf8_lossy(start));
    }
    let hex: Vec<String> = start.iter().map(|byte| format!("{byte:02x}")).collect();
    hex.join(" ")
}

/// Refuses sizes beyond the limit; the error names both.
fn check_size(size: Size, limits: &Limits) -> Result<(), Error> {
    if size.pixels() > limits.max_pixels {
        return Err(Error::TooLarge { size, limit: limits.max_pixels });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(bytes: &[u8]) -> String {
        probe(bytes, &Limits::default()).unwrap_err().to_string()
    }

    #[test]
    fn other_formats_are_refused_by_name() {
        assert_eq!(reason(b"RIFF\0\0\0\0WEBPVP8 "), "WebP is not decoded");
        assert_eq!(reason(b"BM......"), "BMP is not decoded");
        assert_eq!(reason(b"\0\0\0\x1cftypavif"), "AVIF is not decoded");
        assert_eq!(reason(b"II\x2a\0...."), "TIFF is not decoded");
    }

    #[test]
    fn other_bytes_are_named() {
        assert_eq!(reason(b""), "empty file");
        assert_eq!(reason(b"hello world"), "not an image: starts with \"hello wo\"");
        assert_eq!(reason(b"\x01\x02"), "not an image: starts with 01 02");
        assert_eq!(reason(b"\xff\xd8"), "truncated: 2 bytes");
    }
}
