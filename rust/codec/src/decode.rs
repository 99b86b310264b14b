//! Images for the stateless ops: the executor on the calling thread.

use crate::decoder::copy;
use crate::render::{Input, Work, with_scratch};
use crate::{Error, Level};
use forebay_core::ports::{RenderReport, Stop};
use forebay_core::recipe::whole;
use forebay_core::{
    Channels, DType, ImageMeta, ImagePlan, Layout, Limits, Orientation, Region, Size, Write,
};

/// Which channels come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Three, as Pillow's `convert("RGB")`.
    Rgb,
    /// One, as Pillow's `convert("L")`.
    Gray,
    /// Four, as Pillow's `convert("RGBA")`: where the file has no alpha it is 255.
    RgbAlpha,
    /// As many as the file stores, in its depth; of a PNG's or TIFF's palette the indices.
    Unchanged,
}

/// How a whole image is decoded to RGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Memory order of the result.
    pub layout: Layout,
    /// Make the pixels upright by the EXIF orientation.
    pub apply_orientation: bool,
    /// Read a JPEG behind its last row on to its end: damage there counts as warnings, and is an
    /// error where libjpeg refuses it, although all pixels are there.
    pub to_end: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { layout: Layout::Contiguous, apply_orientation: true, to_end: false }
    }
}

/// Of the pixels that [`decode_into`] writes.
pub const CHANNELS: u8 = 3;

/// Size of what [`decode_into`] writes.
pub fn decoded_size(meta: &ImageMeta, options: &Options) -> Size {
    orientation(meta, options.apply_orientation).upright(meta.size)
}

/// Decodes the image that [`crate::probe`] described into `out`, `channels * height * width` bytes;
/// returns the number of decoder warnings about damage that left every row present.
///
/// # Errors
/// The image is damaged, truncated or of a kind that is not decoded, or `out` has another length.
///
/// ```
/// use forebay_codec::{Options, decode_into, decoded_size, probe};
/// use forebay_core::Limits;
///
/// # fn decode(bytes: &[u8]) -> Result<Vec<u8>, forebay_codec::Error> {
/// let limits = Limits::default();
/// let meta = probe(bytes, &limits)?;
/// let options = Options::default();
/// let size = decoded_size(&meta, &options);
/// let mut pixels = vec![0; 3 * size.pixels() as usize];
/// decode_into(bytes, &meta, &options, &limits, &mut pixels)?;
/// # Ok(pixels)
/// # }
/// ```
pub fn decode_into(
    bytes: &[u8],
    meta: &ImageMeta,
    options: &Options,
    limits: &Limits,
    out: &mut [u8],
) -> Result<u32, Error> {
    let channels = CHANNELS;
    let size = decoded_size(meta, options);
    if size.pixels() * u64::from(channels) != out.len() as u64 {
        let got = out.len();
        return Err(Error::Invalid {
            what: format!("expected {channels}x{size} bytes, got {got}"),
        });
    }
    let write = Write {
        channels: Channels::Rgb,
        dtype: DType::UInt8,
        layout: options.layout,
        scale: false,
        normalize: None,
    };
    let plan = whole(meta.size, orientation(meta, options.apply_orientation), write);
    run(Input::Encoded(bytes), meta, &plan, limits, options.to_end, out)
        .map(|report| report.warnings)
}

/// Where the pixels of [`render_into`] come from.
#[derive(Debug, Clone, Copy)]
pub enum Pixels<'a> {
    /// An encoded image.
    Encoded(&'a [u8]),
    /// Decoded rows of interleaved RGB.
    Interleaved(&'a [u8]),
    /// Decoded planes: red, green, blue.
    Planar(&'a [u8]),
}

/// Runs `plan` on the image that `meta` describes, on the calling thread, and writes all of `out`.
///
/// # Errors
/// The image is damaged, truncated or of a kind that is not decoded; plan, pixels and `out` do not
/// fit each other.
pub fn render_into(
    pixels: Pixels<'_>,
    meta: &ImageMeta,
    plan: &ImagePlan,
    limits: &Limits,
    out: &mut [u8],
) -> Result<RenderReport, Error> {
    let input = match pixels {
        Pixels::Encoded(bytes) => Input::Encoded(bytes),
        Pixels::Interleaved(pixels) => Input::Interleaved(pixels),
        Pixels::Planar(pixels) => Input::Planar(pixels),
    };
    run(input, meta, plan, limits, false, out)
}

/// Decodes a region of the stored image that `meta` describes into `out`, rows of interleaved RGB:
/// what [`crate::PixelDecoder`] does, with errors that keep their kind.
///
/// # Errors
/// The image is damaged, truncated or of a kind that is not decoded, or `out` has another length.
pub fn decode_region_into(
    bytes: &[u8],
    meta: &ImageMeta,
    region: Region,
    limits: &Limits,
    out: &mut [u8],
) -> Result<(), Error> {
    run(Input::Encoded(bytes), meta, &copy(region, Channels::Rgb), limits, false, out).map(|_| ())
}

fn run(
    input: Input<'_>,
    meta: &ImageMeta,
    plan: &ImagePlan,
    limits: &Limits,
    to_end: bool,
    out: &mut [u8],
) -> Result<RenderReport, Error> {
    let (level, stop) = (Level::best(), &Stop::default());
    let work = Work { input, meta, plan, limits, level, stop, to_end, fast: false };
    with_scratch(|scratch| work.run(scratch, out))
}

fn orientation(meta: &ImageMeta, apply: bool) -> Orientation {
    if apply { meta.orientation } else { Orientation::default() }
}
