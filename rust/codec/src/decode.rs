//! Whole images for the stateless ops: the executor with a plan that only copies.

use crate::render::{Input, Work, with_scratch};
use crate::{Error, Level};
use forebay_core::ports::Stop;
use forebay_core::{
    Axis, DType, ImageMeta, ImagePlan, Layout, Limits, Orientation, Pass, Region, Size, Taps, Write,
};

/// Which channels come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Mode {
    /// Three, as Pillow's `convert("RGB")`.
    #[default]
    Rgb,
}

impl Mode {
    /// Channels per pixel.
    pub fn channels(self) -> u8 {
        match self {
            Self::Rgb => 3,
        }
    }
}

/// How a whole image is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Channels of the result.
    pub mode: Mode,
    /// Memory order of the result.
    pub layout: Layout,
    /// Make the pixels upright by the EXIF orientation.
    pub apply_orientation: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { mode: Mode::Rgb, layout: Layout::Contiguous, apply_orientation: true }
    }
}

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
    let channels = options.mode.channels();
    let size = decoded_size(meta, options);
    if size.pixels() * u64::from(channels) != out.len() as u64 {
        let got = out.len();
        return Err(Error::Invalid {
            what: format!("expected {channels}x{size} bytes, got {got}"),
        });
    }
    let orientation = orientation(meta, options.apply_orientation);
    let axis = |len: u32, flip: bool| Axis {
        out_len: len,
        content_start: 0,
        taps: Taps::Copy(if flip { (0..len).rev().collect() } else { (0..len).collect() }),
    };
    let plan = ImagePlan {
        region: Region::whole(meta.size),
        transpose: orientation.transpose,
        passes: vec![Pass {
            x: axis(size.width, orientation.flip_x),
            y: axis(size.height, orientation.flip_y),
            fill: [0; 3],
            color: vec![],
            reduce: None,
        }],
        write: Write {
            channels,
            dtype: DType::UInt8,
            layout: options.layout,
            scale: false,
            normalize: None,
        },
    };
    let work = Work {
        input: Input::Encoded(bytes),
        meta,
        plan: &plan,
        limits,
        level: Level::best(),
        stop: &Stop::default(),
    };
    with_scratch(|scratch| work.run(scratch, out)).map(|report| report.warnings)
}

fn orientation(meta: &ImageMeta, apply: bool) -> Orientation {
    if apply { meta.orientation } else { Orientation::default() }
}
