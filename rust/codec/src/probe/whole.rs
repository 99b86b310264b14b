//! Headers that the decoding crates read: BMP, TIFF, GIF and PNM; a file that is too short for its
//! pixels is refused before these have memory.

use super::check_size;
use crate::Error;
use crate::whole::{bmp, gif, guarded, pnm, tiff};
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Limits, Orientation, Size};
use image::ImageDecoder;

pub(super) fn probe(format: Format, bytes: &[u8], limits: &Limits) -> Result<ImageMeta, Error> {
    let stop = Stop::default();
    let header = guarded(format, || match format {
        Format::Bmp => {
            let decoder = bmp::open(bytes, &stop)?;
            let (width, height) = decoder.dimensions();
            let size = Size { width, height };
            let least = bmp::least_bytes(bytes, size);
            Ok((size, Orientation::default(), decoder.color_type().channel_count(), least))
        }
        Format::Tiff => {
            let opened = tiff::open(bytes, &stop)?;
            check_size(opened.tiled_size(), limits)?;
            Ok((opened.size, opened.orientation, opened.components, opened.least_bytes()))
        }
        Format::Gif => {
            let opened = gif::open(bytes, 0, &stop)?;
            let components = if opened.transparent.is_some() { 4 } else { 3 };
            Ok((opened.size, Orientation::default(), components, 0))
        }
        Format::Pnm => {
            let decoder = pnm::open(bytes, &stop)?;
            let (width, height) = decoder.dimensions();
            let least = pnm::least_bytes(&decoder);
            let components = decoder.color_type().channel_count();
            Ok((Size { width, height }, Orientation::default(), components, least))
        }
        Format::Jpeg | Format::Png | Format::WebP => Err(Error::internal("read elsewhere")),
    });
    let (size, orientation, components, least) = header?;
    if size.pixels() == 0 {
        return Err(Error::damaged(format, format!("size {size}")));
    }
    check_size(size, limits)?;
    if (bytes.len() as u64) < least {
        let what = format!("{} bytes for {size} pixels", bytes.len());
        return Err(Error::truncated(what));
    }
    Ok(ImageMeta {
        format,
        size,
        orientation,
        components,
        progressive: false,
        baseline: None,
        restarts: false,
        bytes: bytes.len(),
    })
}

/// Whether a TIFF's first page, which has been read before, has an alpha channel.
pub(super) fn tiff_alpha(bytes: &[u8]) -> bool {
    let stop = Stop::default();
    guarded(Format::Tiff, || tiff::open(bytes, &stop).map(|opened| opened.alpha)).unwrap_or(false)
}
