//! Whole images in the channels that are asked for: grey, with alpha, or as the file stores them.
//!
//! Invariant: what a mode would have to guess is refused by name.

use crate::decode::{Options, decode_into};
use crate::whole::{self, Channels, Stored};
use crate::{Error, Mode};
use forebay_core::ports::Stop;
use forebay_core::{Format, ImageMeta, Layout, Limits, Orientation, Size};

/// A whole image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Upright, if the orientation was applied.
    pub size: Size,
    /// Planes of `pixels`.
    pub channels: u8,
    /// Samples have 16 bits, in the machine's byte order; else 8.
    pub wide: bool,
    /// Plane by plane, row by row.
    pub pixels: Vec<u8>,
}

/// Decodes the image that [`crate::probe`] described.
///
/// # Errors
/// The image is damaged, truncated or of a kind that is not decoded, or not in this mode.
///
/// ```
/// use forebay_codec::{Mode, decode_as, probe};
/// use forebay_core::Limits;
///
/// # fn classes(bytes: &[u8]) -> Result<Vec<u8>, forebay_codec::Error> {
/// let limits = Limits::default();
/// let mask = decode_as(bytes, &probe(bytes, &limits)?, Mode::Unchanged, false, &limits)?;
/// assert_eq!(mask.channels, 1, "indices of a palette");
/// # Ok(mask.pixels)
/// # }
/// ```
pub fn decode_as(
    bytes: &[u8],
    meta: &ImageMeta,
    mode: Mode,
    apply_orientation: bool,
    limits: &Limits,
) -> Result<Image, Error> {
    let whole = |channels| {
        if meta.format == Format::Jpeg {
            return rgb(bytes, meta, limits);
        }
        Ok(whole::decode(bytes, meta, channels, limits, &Stop::default())?.0)
    };
    let stored = match mode {
        Mode::Rgb => whole(Channels::Rgb)?,
        Mode::Gray => whole(Channels::Rgb)?.gray(),
        Mode::RgbAlpha => match whole(Channels::RgbAlpha)? {
            rgb if rgb.channels == 3 => Stored::opaque(&rgb.pixels)?,
            with_alpha => with_alpha,
        },
        Mode::Unchanged if meta.format != Format::Jpeg => whole(Channels::Stored)?,
        Mode::Unchanged => match meta.components {
            1 => rgb(bytes, meta, limits)?.gray(),
            3 => rgb(bytes, meta, limits)?,
            _ => {
                return Err(Error::unsupported("JPEG of four inks in mode UNCHANGED"));
            }
        },
    };
    let orientation = if apply_orientation { meta.orientation } else { Orientation::default() };
    planar(&stored, meta.size, orientation)
}

/// A JPEG's colours, not turned upright.
fn rgb(bytes: &[u8], meta: &ImageMeta, limits: &Limits) -> Result<Stored, Error> {
    let options =
        Options { layout: Layout::ChannelsLast, apply_orientation: false, ..Options::default() };
    let pixels = usize::try_from(3 * meta.size.pixels()).unwrap_or(usize::MAX);
    let mut pixels = Error::filled(0, pixels, "an image")?;
    decode_into(bytes, meta, &options, limits, &mut pixels)?;
    Ok(Stored::bytes(3, pixels))
}

/// Planes of upright pixels.
fn planar(stored: &Stored, size: Size, orientation: Orientation) -> Result<Image, Error> {
    let (channels, width) = (usize::from(stored.channels), size.width as usize);
    let bytes = if stored.wide { 2 } else { 1 };
    let upright = orientation.upright(size);
    let Orientation { transpose, flip_x, flip_y } = orientation;
    let place = |at: u32, len: u32, flips: bool| if flips { len - 1 - at } else { at } as usize;
    let mut pixels = Error::filled(0, stored.pixels.len(), "an image")?;
    let mut out = pixels.chunks_exact_mut(bytes);
    for channel in 0..channels {
        for y in 0..upright.height {
            let y = place(y, upright.height, flip_y);
            for x in 0..upright.width {
                let x = place(x, upright.width, flip_x);
                let (column, row) = if transpose { (y, x) } else { (x, y) };
                let from = ((row * width + column) * channels + channel) * bytes;
                let out = out.next().expect("as many as are stored");
                out.copy_from_slice(&stored.pixels[from..from + bytes]);
            }
        }
    }
    Ok(Image { size: upright, channels: stored.channels, wide: stored.wide, pixels })
}
