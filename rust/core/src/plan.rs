//! Plans: a recipe with every random draw resolved for one sample, as numbers only.
//!
//! A plan is a list of passes. One pass reads its input once: a resample (which orientation,
//! crops, flips, pads and one resize have been merged into), then point-wise colour, then either
//! the final write or an 8-bit intermediate. A reduction over a pass's result (contrast's mean)
//! ends the pass. What needs pixels of several rows and columns at once (a rotation, say) is done
//! to a pass's input, by any of its pixels alone. A mixture makes a pass's input of the result of the
//! pass before and of what chains of passes make of that, each by itself.

use crate::{Channels, DType, Layout, Region, Size};
use std::ops::Range;

/// Everything that is done to one image.
#[derive(Debug, Clone, PartialEq)]
pub struct ImagePlan {
    /// The part of the stored image that the first pass reads.
    pub region: Region,
    /// Rows and columns of the region change places before the first pass.
    pub transpose: bool,
    /// Never empty; the last one writes the slot.
    pub passes: Vec<Pass>,
    /// How the last pass's pixels become the slot's elements.
    pub write: Write,
    /// Parts of the slot that are overwritten then, in order.
    pub erase: Vec<Erase>,
}

impl ImagePlan {
    /// All passes, layers' among them, in the order in which they are done.
    pub fn every_pass(&self) -> impl Iterator<Item = &Pass> {
        self.passes.iter().flat_map(|pass| {
            let layers = pass.mixture.iter().flat_map(|mixture| &mixture.layers);
            layers.flat_map(|layer| &layer.passes).chain(std::iter::once(pass))
        })
    }
}

/// A part of the result that holds nothing of the image.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Erase {
    /// In pixels of the result.
    pub region: Region,
    /// What it holds.
    pub fill: Fill,
}

/// What an erased part holds, before it is rounded to the slot's type as the result's elements are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fill {
    /// One value a channel.
    Value([f32; 3]),
    /// Normal noise of mean 0 and variance 1: for each pixel of the part, by its number in it, what
    /// [`crate::noise`] says.
    Noise {
        /// Of the random numbers.
        key: [u32; 2],
        /// It goes through the slot's `Normalize`.
        normalize: bool,
    },
}

impl Fill {
    /// The value of a channel of a pixel that noise gives a quantile.
    pub fn noise(write: &Write, normalize: bool, quantile: f32, channel: usize) -> f32 {
        if normalize { write.normalized(quantile, channel) } else { quantile }
    }
}

/// One reading of the pixels.
#[derive(Debug, Clone, PartialEq)]
pub struct Pass {
    /// What the pass's input is replaced by; none in a plan's first pass, nor in a layer's passes.
    pub mixture: Option<Mixture>,
    /// What is done to the pass's input first; none in a plan's first pass, or beside a mixture.
    pub gather: Option<Gather>,
    /// Where each output pixel's columns come from, relative to the pass's input.
    pub x: Axis,
    /// Where each output pixel's rows come from, relative to the pass's input.
    pub y: Axis,
    /// Value of output pixels outside the image, per channel.
    pub fill: [u8; 3],
    /// Applied in order to every pixel that comes from the image; each rounds to 8 bits.
    pub color: Vec<ColorOp>,
    /// What the next pass needs to know about this pass's result.
    pub reduce: Option<Reduce>,
}

impl Pass {
    /// Size of the pass's output.
    pub fn size(&self) -> Size {
        Size { width: self.x.out_len, height: self.y.out_len }
    }
}

/// A sum of an image and of what layers make of it, in float32 one after the other and rounded
/// towards zero: `AugMix`'s.
#[derive(Debug, Clone, PartialEq)]
pub struct Mixture {
    /// Of the image itself.
    pub weight: f32,
    /// Added in order. Weights are not negative and add up to 1 with that of the image.
    pub layers: Vec<Layer>,
}

/// A part of a mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Of what the passes make.
    pub weight: f32,
    /// From the image to one of the same size; never empty.
    pub passes: Vec<Pass>,
}

/// A new image of which each pixel is made from some pixels of another, rounded to 8 bits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Gather {
    /// `affine`, `rotate` and `perspective`.
    Warp(Warp),
    /// `adjust_sharpness`; its factor, less 1, times -1.
    Sharpen {
        /// Weight of what a blur changes.
        blur: f32,
    },
}

impl Gather {
    /// Size of the new image.
    pub fn size(&self, input: Size) -> Size {
        match self {
            Self::Warp(warp) => warp.size,
            Self::Sharpen { .. } => input,
        }
    }
}

/// Where each pixel of a new image lies in another: torchvision's grids, sampled as torch's
/// `grid_sample` does with zeros beyond the border and `align_corners=False`, in float32.
///
/// With `x = column + origin[0]` and `y = row + origin[1]`, the grid's numbers are
/// `rows[i] · (x, y, 1)`, over `projection · (x, y, 1)` and less 1 if that is given. They are -1 and
/// 1 at the input's borders.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Warp {
    /// Of the new image.
    pub size: Size,
    /// Coordinates of its first pixel.
    pub origin: [f32; 2],
    /// Into the input: across and down.
    pub rows: [[f32; 3]; 2],
    /// The divisor's row without its last number, which is 1.
    pub projection: Option<[f32; 2]>,
    /// Four pixels are mixed; else the nearest one is taken.
    pub bilinear: bool,
    /// Of what lies outside the input; `None` for black that is not told from it.
    pub fill: Option<[u8; 3]>,
}

/// One direction of a resample: which input positions make up each output position.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Output positions.
    pub out_len: u32,
    /// First output position that comes from the image; those before it are fill.
    pub content_start: u32,
    /// Sources of the output positions from `content_start` on; the rest is fill.
    pub taps: Taps,
}

impl Axis {
    /// Output positions that come from the image.
    pub fn content_len(&self) -> u32 {
        match &self.taps {
            Taps::Copy(sources) => u32::try_from(sources.len()).expect("an axis fits 32 bits"),
            Taps::Weighted(table) => table.len(),
        }
    }
}

impl Axis {
    /// The input positions from the first that the axis reads to the last; none if it reads none.
    pub fn extent(&self) -> Option<Range<u32>> {
        match &self.taps {
            Taps::Copy(sources) => {
                sources.iter().min().zip(sources.iter().max()).map(|(first, last)| *first..last + 1)
            }
            Taps::Weighted(table) => table.extent(),
        }
    }
}

/// Sources of an axis's output positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Taps {
    /// Each output position is one input position, unchanged (identity, flips, nearest).
    Copy(Vec<u32>),
    /// Each output position is a weighted sum of consecutive input positions.
    Weighted(crate::coeffs::Table),
}

/// A point-wise change of colour on 8-bit RGB, or on grey if it does not mix channels, with
/// torchvision v2's arithmetic on uint8 tensors.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ColorOp {
    /// `adjust_brightness`.
    Brightness(f32),
    /// `adjust_contrast`; the grey mean is that of the previous pass's `Reduce::GrayMean`.
    Contrast(Blend),
    /// `adjust_saturation`.
    Saturation(Blend),
    /// `adjust_hue`, in turns.
    Hue(f32),
    /// `rgb_to_grayscale`, in all three channels.
    Grayscale,
    /// `invert`.
    Invert,
    /// `posterize`: how many of the upper bits stay.
    Posterize(u8),
    /// `solarize`: values from here on are inverted.
    Solarize(f32),
    /// `autocontrast`, by the previous pass's `Reduce::Histogram`.
    Autocontrast,
    /// `equalize`, by the previous pass's `Reduce::Histogram`.
    Equalize,
    /// `permute_channels`: for each channel the one that it is taken from.
    Permute([u8; 3]),
}

/// The weights of torchvision's `_blend`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Blend {
    /// Of the image.
    pub image: f32,
    /// Of what it is blended with.
    pub other: f32,
}

impl Blend {
    /// By the image's weight; the other is what is missing to 1, in double precision as Python
    /// computes it. ATen rounds both to float32.
    #[allow(clippy::cast_possible_truncation, reason = "as ATen does")]
    pub const fn new(ratio: f64) -> Self {
        Self { image: ratio as f32, other: (1.0 - ratio) as f32 }
    }
}

/// What is drawn from all pixels of a pass's result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    /// Mean of the grey value over all pixels: of three channels rounded down per pixel, as
    /// torchvision does, of one the value itself.
    GrayMean,
    /// How often each channel has each value.
    Histogram,
}

impl ColorOp {
    /// Whether a channel's new value depends on other channels. torchvision leaves images of one
    /// channel as they are then.
    pub fn mixes_channels(&self) -> bool {
        match self {
            Self::Saturation(_) | Self::Hue(_) | Self::Grayscale | Self::Permute(_) => true,
            Self::Brightness(_)
            | Self::Contrast(_)
            | Self::Invert
            | Self::Posterize(_)
            | Self::Solarize(_)
            | Self::Autocontrast
            | Self::Equalize => false,
        }
    }

    /// What it needs to know about all pixels before it.
    pub fn needs(&self) -> Option<Reduce> {
        match self {
            Self::Contrast(_) => Some(Reduce::GrayMean),
            Self::Autocontrast | Self::Equalize => Some(Reduce::Histogram),
            Self::Brightness(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Grayscale
            | Self::Invert
            | Self::Posterize(_)
            | Self::Solarize(_)
            | Self::Permute(_) => None,
        }
    }
}

/// How 8-bit pixels become elements of the slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Write {
    /// What is read of the image, and has a place in the slot.
    pub channels: Channels,
    /// Element type: uint8, float16, bfloat16 or float32.
    pub dtype: DType,
    /// Memory order.
    pub layout: Layout,
    /// Multiply by 1/255 first (`ToDtype(scale=True)`).
    pub scale: bool,
    /// Then `(value - mean) / std`, in float32.
    pub normalize: Option<Normalize>,
}

/// Per-channel affine map, `(value - mean) / std`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Normalize {
    /// Subtracted.
    pub mean: [f32; 3],
    /// Divided by.
    pub std: [f32; 3],
}

impl Write {
    /// The float that a channel's 8-bit value becomes, as torchvision computes it in float32.
    ///
    /// ```
    /// # use forebay_core::{Channels, DType, Layout, Write};
    /// let write = Write {
    ///     channels: Channels::Rgb, dtype: DType::Float32, layout: Layout::Contiguous, scale: true,
    ///     normalize: None,
    /// };
    /// assert_eq!(write.value(255, 0), 1.0);
    /// ```
    pub fn value(&self, pixel: u8, channel: usize) -> f32 {
        // torchvision's to_dtype multiplies by the rounded reciprocal; it does not divide.
        let value = f32::from(pixel) * if self.scale { 1.0 / 255.0 } else { 1.0 };
        self.normalized(value, channel)
    }

    /// A float of a channel, normalised if that is asked for.
    pub(crate) fn normalized(&self, value: f32, channel: usize) -> f32 {
        match &self.normalize {
            Some(Normalize { mean, std }) => (value - mean[channel]) / std[channel],
            None => value,
        }
    }
}
