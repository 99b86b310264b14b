//! The recipe as the user wrote it: torchvision v2's names and arguments, parsed strictly.

use super::batch::BatchTransform;
use crate::coeffs::Interpolation;
use crate::{Channels, DType, Layout};
use serde::Deserialize;

/// A list of transforms and the form that images leave it in.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeSpec {
    /// In the order of application.
    pub transforms: Vec<Transform>,
    /// What is done to each batch of their results, in order.
    #[serde(default)]
    pub batch: Vec<BatchTransform>,
    /// Element type of the batch; by default what the transforms say, else uint8.
    #[serde(default)]
    pub dtype: Option<DType>,
    /// Memory order of the batch.
    #[serde(default)]
    pub layout: Layout,
    /// What is read of images.
    #[serde(default)]
    pub mode: Channels,
}

/// One transform. Sizes are `[height, width]`, as everywhere in Python.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "name", deny_unknown_fields)]
#[allow(missing_docs, reason = "names and arguments are torchvision.transforms.v2's")]
pub enum Transform {
    RandomResizedCrop {
        size: [u32; 2],
        #[serde(default = "default_scale")]
        scale: [f64; 2],
        #[serde(default = "default_ratio")]
        ratio: [f64; 2],
        #[serde(default = "bilinear")]
        interpolation: Interpolation,
        #[serde(default = "yes")]
        antialias: bool,
    },
    Resize {
        /// One number for the shorter edge, or height and width.
        size: Vec<u32>,
        #[serde(default)]
        max_size: Option<u32>,
        #[serde(default = "bilinear")]
        interpolation: Interpolation,
        #[serde(default = "yes")]
        antialias: bool,
    },
    CenterCrop {
        size: [u32; 2],
    },
    /// `functional.crop` with torchvision's arguments: the same place of every image.
    Crop {
        top: i32,
        left: i32,
        height: u32,
        width: u32,
    },
    Pad {
        /// Left, top, right, bottom.
        padding: [u32; 4],
        #[serde(default)]
        fill: [u8; 3],
        #[serde(default)]
        padding_mode: PaddingMode,
    },
    RandomCrop {
        size: [u32; 2],
        /// Left, top, right, bottom.
        #[serde(default)]
        padding: Option<[u32; 4]>,
        #[serde(default)]
        pad_if_needed: bool,
        #[serde(default)]
        fill: [u8; 3],
        #[serde(default)]
        padding_mode: PaddingMode,
    },
    RandomHorizontalFlip {
        #[serde(default = "half")]
        p: f64,
    },
    RandomVerticalFlip {
        #[serde(default = "half")]
        p: f64,
    },
    RandomRotation {
        degrees: [f64; 2],
        interpolation: Interpolation,
        expand: bool,
        center: Option<[f64; 2]>,
        fill: Option<[u8; 3]>,
    },
    RandomAffine {
        degrees: [f64; 2],
        /// Largest parts of width and height.
        translate: Option<[f64; 2]>,
        scale: Option<[f64; 2]>,
        /// Degrees across, then down.
        shear: Option<[f64; 4]>,
        interpolation: Interpolation,
        fill: Option<[u8; 3]>,
        center: Option<[f64; 2]>,
    },
    RandomPerspective {
        distortion_scale: f64,
        p: f64,
        interpolation: Interpolation,
        fill: Option<[u8; 3]>,
    },
    RandomAdjustSharpness {
        sharpness_factor: f64,
        p: f64,
    },
    GaussianBlur {
        /// Across, then down.
        kernel_size: [u32; 2],
        sigma: [f64; 2],
    },
    AutoAugment {
        policy: Policy,
        interpolation: Interpolation,
        fill: Option<[u8; 3]>,
    },
    RandAugment {
        num_ops: u32,
        magnitude: u32,
        num_magnitude_bins: u32,
        interpolation: Interpolation,
        fill: Option<[u8; 3]>,
    },
    TrivialAugmentWide {
        num_magnitude_bins: u32,
        interpolation: Interpolation,
        fill: Option<[u8; 3]>,
    },
    AugMix {
        severity: u32,
        mixture_width: u32,
        /// `None` for one to three, drawn.
        chain_depth: Option<u32>,
        alpha: f64,
        all_ops: bool,
        interpolation: Interpolation,
        fill: Option<[u8; 3]>,
    },
    ColorJitter {
        #[serde(default)]
        brightness: Option<[f64; 2]>,
        #[serde(default)]
        contrast: Option<[f64; 2]>,
        #[serde(default)]
        saturation: Option<[f64; 2]>,
        #[serde(default)]
        hue: Option<[f64; 2]>,
    },
    Grayscale,
    RandomGrayscale {
        p: f64,
    },
    RandomInvert {
        p: f64,
    },
    RandomPosterize {
        bits: u8,
        p: f64,
    },
    RandomAutocontrast {
        p: f64,
    },
    RandomEqualize {
        p: f64,
    },
    RandomSolarize {
        threshold: f64,
        p: f64,
    },
    RandomPhotometricDistort {
        brightness: [f64; 2],
        contrast: [f64; 2],
        saturation: [f64; 2],
        hue: [f64; 2],
        p: f64,
    },
    /// All of them, or none.
    RandomApply {
        transforms: Vec<Transform>,
        p: f64,
    },
    /// One of them, each with its probability.
    RandomChoice {
        transforms: Vec<Transform>,
        p: Vec<f64>,
    },
    RandomOrder {
        transforms: Vec<Transform>,
    },
    RandomErasing {
        p: f64,
        scale: [f64; 2],
        ratio: [f64; 2],
        value: ErasedBy,
    },
    ToDtype {
        dtype: DType,
        #[serde(default)]
        scale: bool,
    },
    Normalize {
        mean: [f32; 3],
        std: [f32; 3],
    },
}

/// The data set that a policy of `AutoAugment` was found for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "names of data sets")]
pub enum Policy {
    ImageNet,
    Cifar10,
    Svhn,
}

/// What stands beyond an image's border.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PaddingMode {
    /// The fill value.
    #[default]
    Constant,
    /// The pixel at the border.
    Edge,
    /// The image mirrored at the border's pixel, which is not repeated.
    Reflect,
    /// The image mirrored at the border.
    Symmetric,
}

impl Transform {
    /// The transform's name, for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RandomResizedCrop { .. } => "RandomResizedCrop",
            Self::Resize { .. } => "Resize",
            Self::CenterCrop { .. } => "CenterCrop",
            Self::Crop { .. } => "Crop",
            Self::Pad { .. } => "Pad",
            Self::RandomCrop { .. } => "RandomCrop",
            Self::RandomHorizontalFlip { .. } => "RandomHorizontalFlip",
            Self::RandomVerticalFlip { .. } => "RandomVerticalFlip",
            Self::RandomRotation { .. } => "RandomRotation",
            Self::RandomAffine { .. } => "RandomAffine",
            Self::RandomPerspective { .. } => "RandomPerspective",
            Self::RandomAdjustSharpness { .. } => "RandomAdjustSharpness",
            Self::GaussianBlur { .. } => "GaussianBlur",
            Self::AutoAugment { .. } => "AutoAugment",
            Self::RandAugment { .. } => "RandAugment",
            Self::TrivialAugmentWide { .. } => "TrivialAugmentWide",
            Self::AugMix { .. } => "AugMix",
            Self::ColorJitter { .. } => "ColorJitter",
            Self::Grayscale => "Grayscale",
            Self::RandomGrayscale { .. } => "RandomGrayscale",
            Self::RandomInvert { .. } => "RandomInvert",
            Self::RandomPosterize { .. } => "RandomPosterize",
            Self::RandomAutocontrast { .. } => "RandomAutocontrast",
            Self::RandomEqualize { .. } => "RandomEqualize",
            Self::RandomSolarize { .. } => "RandomSolarize",
            Self::RandomPhotometricDistort { .. } => "RandomPhotometricDistort",
            Self::RandomApply { .. } => "RandomApply",
            Self::RandomChoice { .. } => "RandomChoice",
            Self::RandomOrder { .. } => "RandomOrder",
            Self::RandomErasing { .. } => "RandomErasing",
            Self::ToDtype { .. } => "ToDtype",
            Self::Normalize { .. } => "Normalize",
        }
    }
}

/// What `RandomErasing` puts into the erased part.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum ErasedBy {
    /// One value a channel.
    Value([f32; 3]),
    /// `"random"`: a normal number for each element.
    Noise(Noise),
}

/// The word for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// Of mean 0 and variance 1.
    Random,
}

fn default_scale() -> [f64; 2] {
    [0.08, 1.0]
}

fn default_ratio() -> [f64; 2] {
    [3.0 / 4.0, 4.0 / 3.0]
}

fn bilinear() -> Interpolation {
    Interpolation::Bilinear
}

fn yes() -> bool {
    true
}

fn half() -> f64 {
    0.5
}
