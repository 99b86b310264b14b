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
pub(crate) mod webp;
mod whole;

use crate::Error;
use crate::whole::pnm::is_pnm;
use forebay_core::{Format, ImageMeta, Limits, Size};

/// Reads the header of an encoded image, within the limits.
///
/// # Errors
/// The bytes are not an image, of a kind that is not decoded, damaged, truncated or too large.
///
/// ```
/// use forebay_core::Limits;
/// let error = forebay_codec::probe(b"8BPS....", &Limits::default()).unwrap_err();
/// assert_eq!(error.to_string(), "Photoshop document is not decoded");
/// ```
pub fn probe(bytes: &[u8], limits: &Limits) -> Result<ImageMeta, Error> {
    match format_of(bytes)? {
        Format::Jpeg => jpeg::probe(bytes, limits),
        Format::Png => png::probe(bytes, limits),
        Format::WebP => webp::probe(bytes, limits),
        format @ (Format::Bmp | Format::Tiff | Format::Gif | Format::Pnm) => {
            whole::probe(format, bytes, limits)
        }
    }
}

/// Whether the image of these bytes, which `probe` has read as `meta`, has transparency: an alpha
/// channel, a PNG's tRNS chunk or a GIF's transparent colour.
pub fn transparent(bytes: &[u8], meta: &ImageMeta) -> bool {
    match meta.format {
        Format::Jpeg | Format::Pnm => false,
        Format::Png => matches!(meta.components, 2 | 4) || png::has_trns(bytes),
        Format::WebP | Format::Bmp | Format::Gif => meta.components == 4,
        Format::Tiff => whole::tiff_alpha(bytes),
    }
}

/// First bytes, and what they tell. WebP's stand behind a length.
const DECODED: [(&[u8], Format); 9] = [
    (&[0xff, 0xd8, 0xff], Format::Jpeg),
    (png::SIGNATURE, Format::Png),
    (b"BM", Format::Bmp),
    (b"GIF87a", Format::Gif),
    (b"GIF89a", Format::Gif),
    (b"II\x2a\0", Format::Tiff),
    (b"MM\0\x2a", Format::Tiff),
    (b"II\x2b\0", Format::Tiff),
    (b"MM\0\x2b", Format::Tiff),
];

fn format_of(bytes: &[u8]) -> Result<Format, Error> {
    if bytes.is_empty() {
        return Err(Error::Empty);
    }
    if let Some(&(_, format)) = DECODED.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Ok(format);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Ok(Format::WebP);
    }
    if is_pnm(bytes) {
        return Ok(Format::Pnm);
    }
    let cut = DECODED.iter().any(|(magic, _)| magic.starts_with(bytes));
    if cut || bytes.len() < 12 && (bytes.starts_with(b"RIFF") || b"RIFF".starts_with(bytes)) {
        return Err(Error::truncated(format!("{} bytes", bytes.len())));
    }
    match other_format(bytes) {
        Some(name) => Err(Error::unsupported(name)),
        None => Err(Error::NotAnImage { start: readable_start(bytes) }),
    }
}

/// The name of an image format that we recognise without decoding it.
fn other_format(bytes: &[u8]) -> Option<&'static str> {
    if bytes.get(4..8) == Some(b"ftyp") {
        return match bytes.get(8..12)? {
            b"avif" | b"avis" => Some("AVIF"),
            b"heic" | b"heix" | b"hevc" | b"hevx" | b"heim" | b"heis" | b"mif1" | b"msf1" => {
                Some("HEIC")
            }
            _ => None,
        };
    }
    let magics: [(&[u8], &str); 10] = [
        (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
        (b"\xff\x4f\xff\x51", "JPEG 2000"),
        (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
        (b"\xff\x0a", "JPEG XL"),
        (b"8BPS", "Photoshop document"),
        (b"P7\n", "PAM"),
        (b"\0\0\x01\0", "ICO"),
        (b"DDS ", "DDS"),
        (b"qoif", "QOI"),
        (b"\x76\x2f\x31\x01", "OpenEXR"),
    ];
    magics.iter().find(|(magic, _)| bytes.starts_with(magic)).map(|&(_, name)| name)
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
        assert_eq!(reason(b"\0\0\0\x1cftypavif"), "AVIF is not decoded");
        assert_eq!(reason(b"\0\0\0\x18ftypheic"), "HEIC is not decoded");
        assert_eq!(reason(b"\xff\x4f\xff\x51...."), "JPEG 2000 is not decoded");
        assert_eq!(reason(b"\xff\x0a......"), "JPEG XL is not decoded");
    }

    #[test]
    fn other_bytes_are_named() {
        assert_eq!(reason(b""), "empty file");
        assert_eq!(reason(b"hello world"), "not an image: starts with \"hello wo\"");
        assert_eq!(reason(b"\x01\x02"), "not an image: starts with 01 02");
        assert_eq!(
            reason(b"RIFF\0\0\0\0WAVEfmt "),
            "not an image: starts with 52 49 46 46 00 00 00 00"
        );
        assert_eq!(reason(b"\xff\xd8"), "truncated: 2 bytes");
        assert_eq!(reason(b"RIFF\0\0\0\0WEB"), "truncated: 11 bytes");
    }
}
