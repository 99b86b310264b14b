//! Checks of a recipe's arguments, and the batch that it leads to.

use super::MAX_SIDE;
use super::spec::{ErasedBy, RecipeSpec, Transform};
use crate::coeffs::Interpolation;
use crate::{DType, ErrorKind, HasKind, Normalize, Size};

/// A recipe that cannot be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecipeError {
    /// An argument is out of range.
    #[error("transforms[{place}] ({name}): {problem}")]
    Argument {
        /// Index in the list.
        place: usize,
        /// The transform.
        name: &'static str,
        /// What was got and what would be right.
        problem: String,
    },
    /// Output sizes depend on the image.
    #[error(
        "the recipe cannot batch: images keep sizes of their own; add Resize((height, width)), \
         RandomResizedCrop, CenterCrop or RandomCrop"
    )]
    NoFixedSize,
    /// The batch's element type does not go with the transforms.
    #[error("{0}")]
    DType(String),
}

impl HasKind for RecipeError {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Argument { .. } | Self::NoFixedSize | Self::DType(_) => ErrorKind::Invalid,
        }
    }
}

/// What a recipe says about every image it makes.
#[derive(Debug)]
pub(super) struct Checked {
    pub(super) size: Size,
    pub(super) dtype: DType,
    pub(super) scale: bool,
    pub(super) normalize: Option<Normalize>,
}

/// Walks the transforms and collects the output's form.
pub(super) fn check(spec: &RecipeSpec) -> Result<Checked, RecipeError> {
    let mut size = None;
    let mut conversion = Conversion::default();
    for (place, transform) in spec.transforms.iter().enumerate() {
        let name = transform.name();
        let wrong = |problem| RecipeError::Argument { place, name, problem };
        check_arguments(transform).map_err(wrong)?;
        size = output_size(transform, size);
        let sides = size.map_or([1; 2], |size| [size.height, size.width]);
        check_sides(&sides).map_err(wrong)?;
        conversion.step(transform).map_err(wrong)?;
    }
    let size = size.ok_or(RecipeError::NoFixedSize)?;
    conversion.finish(spec.dtype).map(|(dtype, scale, normalize)| Checked {
        size,
        dtype,
        scale,
        normalize,
    })
}

/// The size that all images have after a transform, as far as it is the same; `before` is that
/// before it.
fn output_size(transform: &Transform, before: Option<Size>) -> Option<Size> {
    let fixed = |[height, width]: [u32; 2]| Some(Size { width, height });
    let all = |transforms: &[Transform]| {
        transforms.iter().fold(before, |size, transform| output_size(transform, size))
    };
    match transform {
        Transform::RandomResizedCrop { size, .. }
        | Transform::CenterCrop { size }
        | Transform::RandomCrop { size, .. } => fixed(*size),
        Transform::Crop { height, width, .. } => fixed([*height, *width]),
        Transform::Resize { size, max_size, .. } => match *size.as_slice() {
            [height, width] => fixed([height, width]),
            // The shorter edge alone fixes the size only of images that are alike already.
            _ => super::resolve::resized(before?, size, *max_size).ok(),
        },
        Transform::Pad { padding: [left, top, right, bottom], .. } => {
            let Size { width, height } = before?;
            fixed([height + top + bottom, width + left + right])
        }
        Transform::RandomRotation { expand: true, .. } => None,
        Transform::RandomApply { transforms, p } => {
            let applied = all(transforms);
            if *p >= 1.0 { applied } else { before.filter(|_| applied == before) }
        }
        Transform::RandomChoice { transforms, .. } => {
            let mut sizes = transforms.iter().map(|transform| output_size(transform, before));
            let first = sizes.next()?;
            first.filter(|_| sizes.all(|size| size == first))
        }
        Transform::RandomOrder { transforms } => {
            // One that makes a size of its own, and none that changes it before or behind.
            let made = transforms.iter().find_map(|transform| output_size(transform, None));
            let size = made.or(before);
            let kept = transforms.iter().all(|transform| output_size(transform, size) == size);
            size.filter(|_| kept)
        }
        _ => before,
    }
}

/// The conversion that rides on the write: at most one `ToDtype` to float, then `Normalize`.
#[derive(Debug, Default)]
struct Conversion {
    dtype: Option<DType>,
    scale: bool,
    normalize: Option<Normalize>,
    /// Nothing but conversions may follow.
    erases: bool,
}

impl Conversion {
    fn step(&mut self, transform: &Transform) -> Result<(), String> {
        match transform {
            Transform::ToDtype { dtype, scale } => {
                if matches!(dtype, DType::Bool | DType::Int64 | DType::Float64) {
                    return Err(format!(
                        "dtype {dtype:?} is not offered; use uint8, float16, bfloat16 or float32"
                    ));
                }
                if *dtype == DType::UInt8 && self.dtype.is_some_and(|dtype| dtype != DType::UInt8) {
                    return Err("images that became float cannot go back to uint8".into());
                }
                if self.dtype.is_none_or(|dtype| dtype == DType::UInt8) {
                    self.scale = *scale && *dtype != DType::UInt8;
                }
                self.dtype = Some(*dtype);
            }
            Transform::Normalize { mean, std } => {
                if self.normalize.is_some() {
                    return Err("a second Normalize; merge the two into one".into());
                }
                if self.dtype.is_none_or(|dtype| dtype == DType::UInt8) {
                    (self.dtype, self.scale) = (Some(DType::Float32), true);
                }
                self.normalize = Some(Normalize { mean: *mean, std: *std });
            }
            Transform::RandomApply { transforms, .. }
            | Transform::RandomChoice { transforms, .. }
            | Transform::RandomOrder { transforms }
                if transforms.iter().any(converts) =>
            {
                return Err("ToDtype, Normalize and RandomErasing cannot be left to chance".into());
            }
            Transform::RandomErasing { value, .. } => {
                self.erases = true;
                let is_float = self.dtype.is_some_and(|dtype| dtype != DType::UInt8);
                let is_pixel = |value: &f32| (0.0..=255.0).contains(value) && value.fract() == 0.0;
                match value {
                    ErasedBy::Value(value) if !is_float && !value.iter().all(is_pixel) => {
                        return Err(format!(
                            "value must be whole numbers in 0..255 before images become float, got \
                             {value:?}"
                        ));
                    }
                    ErasedBy::Noise(_) if !is_float => {
                        return Err("value=\"random\" is noise around 0, which images of uint8 \
                                    cannot hold; put it behind ToDtype or Normalize"
                            .into());
                    }
                    _ => {}
                }
            }
            _ if self.erases => {
                return Err("comes after RandomErasing; move it before".into());
            }
            _ if self.dtype.is_some_and(|dtype| dtype != DType::UInt8) => {
                return Err(format!(
                    "comes after images became float; move it before {}",
                    if self.normalize.is_some() { "Normalize" } else { "ToDtype or ToTensor" }
                ));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(
        self,
        wanted: Option<DType>,
    ) -> Result<(DType, bool, Option<Normalize>), RecipeError> {
        let made = self.dtype.unwrap_or(DType::UInt8);
        let dtype = wanted.unwrap_or(made);
        match dtype {
            DType::UInt8 if made != DType::UInt8 => Err(RecipeError::DType(
                "dtype=uint8 contradicts the recipe, whose ToDtype or Normalize makes floats"
                    .into(),
            )),
            DType::Bool | DType::Int64 | DType::Float64 => Err(RecipeError::DType(format!(
                "dtype {dtype:?} is not offered; use uint8, float16, bfloat16 or float32"
            ))),
            DType::UInt8 => Ok((dtype, false, None)),
            // Asking for floats without saying how means torchvision's ToDtype(dtype, scale=True).
            _ if made == DType::UInt8 => Ok((dtype, true, None)),
            _ => Ok((dtype, self.scale, self.normalize)),
        }
    }
}

/// Whether images may leave it in a form that other transforms do not take.
fn converts(transform: &Transform) -> bool {
    match transform {
        Transform::ToDtype { .. }
        | Transform::Normalize { .. }
        | Transform::RandomErasing { .. } => true,
        Transform::RandomApply { transforms, .. }
        | Transform::RandomChoice { transforms, .. }
        | Transform::RandomOrder { transforms } => transforms.iter().any(converts),
        _ => false,
    }
}

fn check_all(transforms: &[Transform]) -> Result<(), String> {
    if transforms.is_empty() {
        return Err("expected at least one transform, got none".into());
    }
    transforms.iter().try_for_each(|transform| {
        check_arguments(transform).map_err(|problem| format!("{}: {problem}", transform.name()))
    })
}

fn check_arguments(transform: &Transform) -> Result<(), String> {
    match transform {
        Transform::RandomResizedCrop { size, scale, ratio, .. } => {
            check_sides(size)?;
            check_range("scale", *scale, 0.0, f64::INFINITY)?;
            check_range("ratio", *ratio, 0.0, f64::INFINITY)?;
            if scale[1] <= 0.0 || ratio[0] <= 0.0 {
                return Err(format!("scale {scale:?} and ratio {ratio:?} must be positive"));
            }
            Ok(())
        }
        Transform::Resize { size, max_size, .. } => {
            check_sides(size)?;
            match (size.as_slice(), max_size) {
                ([_] | [_, _], None) => Ok(()),
                ([short], Some(max_size)) if max_size > short && *max_size <= MAX_SIDE => Ok(()),
                ([short], Some(max_size)) => Err(format!(
                    "max_size {max_size} must be above size {short} and at most {MAX_SIDE}"
                )),
                ([_, _], Some(_)) => {
                    Err("max_size goes with a size of one number (the shorter edge)".into())
                }
                _ => Err(format!("size must be one or two numbers, got {size:?}")),
            }
        }
        Transform::CenterCrop { size } => check_sides(size),
        Transform::Crop { height, width, .. } => check_sides(&[*height, *width]),
        Transform::Pad { padding, .. } => check_padding(padding),
        Transform::RandomCrop { size, padding, .. } => {
            check_sides(size)?;
            check_padding(&padding.unwrap_or_default())
        }
        Transform::RandomHorizontalFlip { p }
        | Transform::RandomVerticalFlip { p }
        | Transform::RandomGrayscale { p }
        | Transform::RandomAutocontrast { p }
        | Transform::RandomEqualize { p }
        | Transform::RandomInvert { p } => check_probability(*p),
        Transform::RandomPosterize { bits, p } => {
            check_range("bits", [f64::from(*bits); 2], 0.0, 8.0)?;
            check_probability(*p)
        }
        Transform::RandomSolarize { threshold, p } => {
            check_range("threshold", [*threshold; 2], 0.0, 255.0)?;
            check_probability(*p)
        }
        Transform::ColorJitter { brightness, contrast, saturation, hue } => {
            let ranges = [*brightness, *contrast, *saturation, *hue];
            check_colors(ranges.map(Option::unwrap_or_default))
        }
        Transform::RandomPhotometricDistort { brightness, contrast, saturation, hue, p } => {
            check_colors([*brightness, *contrast, *saturation, *hue])?;
            check_probability(*p)
        }
        Transform::RandomErasing { p, scale, ratio, value } => {
            check_range("scale", *scale, 0.0, 1.0)?;
            check_range("ratio", *ratio, f64::MIN_POSITIVE, f64::MAX)?;
            if let ErasedBy::Value(value) = value
                && let Some(value) = value.iter().find(|value| !value.is_finite())
            {
                return Err(format!("value must be finite, got {value}"));
            }
            check_probability(*p)
        }
        Transform::RandomApply { transforms, p } => {
            check_probability(*p)?;
            check_all(transforms)
        }
        Transform::RandomChoice { transforms, p } => {
            check_probabilities(p, transforms.len())?;
            check_all(transforms)
        }
        Transform::RandomOrder { transforms } => check_all(transforms),
        Transform::Grayscale | Transform::ToDtype { .. } => Ok(()),
        Transform::Normalize { mean, std } => {
            if let Some(value) = mean.iter().find(|value| !value.is_finite()) {
                return Err(format!("mean must be finite, got {value}"));
            }
            match std.iter().find(|value| !value.is_finite() || **value <= 0.0) {
                Some(value) => Err(format!("std must be positive, got {value}")),
                None => Ok(()),
            }
        }
        warps => check_warps(warps),
    }
}

/// Those that turn, shear, tilt and blur, and those that draw such.
fn check_warps(transform: &Transform) -> Result<(), String> {
    match transform {
        Transform::RandomRotation { degrees, interpolation, center, .. } => {
            check_angles("degrees", *degrees)?;
            check_center(*center)?;
            check_sampling(*interpolation)
        }
        Transform::RandomAffine {
            degrees, translate, scale, shear, interpolation, center, ..
        } => {
            check_angles("degrees", *degrees)?;
            let [across, down] = translate.unwrap_or_default();
            check_range("translate", [across; 2], 0.0, 1.0)?;
            check_range("translate", [down; 2], 0.0, 1.0)?;
            check_range("scale", scale.unwrap_or([1.0; 2]), 1e-6, 1e6)?;
            let [x0, x1, y0, y1] = shear.unwrap_or_default();
            check_angles("shear", [x0, x1])?;
            check_angles("shear", [y0, y1])?;
            check_center(*center)?;
            check_sampling(*interpolation)
        }
        Transform::RandomPerspective { distortion_scale, p, interpolation, .. } => {
            check_range("distortion_scale", [*distortion_scale; 2], 0.0, 1.0)?;
            check_probability(*p)?;
            check_sampling(*interpolation)
        }
        Transform::RandomAdjustSharpness { sharpness_factor, p } => {
            check_range("sharpness_factor", [*sharpness_factor; 2], 0.0, f64::from(f32::MAX))?;
            check_probability(*p)
        }
        Transform::GaussianBlur { kernel_size, sigma } => {
            if let Some(side) =
                kernel_size.iter().find(|side| *side % 2 == 0 || **side > MAX_KERNEL)
            {
                return Err(format!(
                    "kernel_size must be odd numbers up to {MAX_KERNEL}, got {side}"
                ));
            }
            check_range("sigma", *sigma, f64::MIN_POSITIVE, 1e6)
        }
        Transform::AutoAugment { interpolation, .. } => check_sampling(*interpolation),
        Transform::RandAugment {
            num_ops, magnitude, num_magnitude_bins, interpolation, ..
        } => {
            if *num_ops > MAX_OPS {
                return Err(format!("num_ops must be at most {MAX_OPS}, got {num_ops}"));
            }
            check_bins(*num_magnitude_bins)?;
            if magnitude >= num_magnitude_bins {
                return Err(format!(
                    "magnitude must be below num_magnitude_bins {num_magnitude_bins}, got {magnitude}"
                ));
            }
            check_sampling(*interpolation)
        }
        Transform::AugMix {
            severity, mixture_width, chain_depth, alpha, interpolation, ..
        } => {
            check_range("severity", [f64::from(*severity); 2], 1.0, 10.0)?;
            check_range("mixture_width", [f64::from(*mixture_width); 2], 0.0, MAX_LAYERS.into())?;
            let depth = chain_depth.map_or(1, |depth| depth);
            check_range("chain_depth", [f64::from(depth); 2], 1.0, MAX_OPS.into())?;
            check_range("alpha", [*alpha; 2], f64::MIN_POSITIVE, 1e6)?;
            check_sampling(*interpolation)
        }
        Transform::TrivialAugmentWide { num_magnitude_bins, interpolation, .. } => {
            check_bins(*num_magnitude_bins)?;
            check_sampling(*interpolation)
        }
        _ => Ok(()),
    }
}

/// Largest kernel of a blur, whose weights have 16 bits.
const MAX_KERNEL: u32 = 255;
/// Most chains of `AugMix`.
const MAX_LAYERS: u32 = 16;
/// Most transforms that one transform may draw.
const MAX_OPS: u32 = 64;

fn check_bins(bins: u32) -> Result<(), String> {
    if bins >= 2 {
        return Ok(());
    }
    Err(format!("num_magnitude_bins must be at least 2, got {bins}"))
}

fn check_angles(name: &str, angles: [f64; 2]) -> Result<(), String> {
    check_range(name, angles, -1e6, 1e6)
}

fn check_center(center: Option<[f64; 2]>) -> Result<(), String> {
    match center.iter().flatten().find(|place| place.is_nan() || place.abs() > 1e6) {
        Some(place) => Err(format!("center must be within a million pixels, got {place}")),
        None => Ok(()),
    }
}

fn check_sampling(interpolation: Interpolation) -> Result<(), String> {
    match interpolation {
        Interpolation::Nearest | Interpolation::Bilinear => Ok(()),
        _ => Err("interpolation must be nearest or bilinear".into()),
    }
}

pub(super) fn check_probability(p: f64) -> Result<(), String> {
    check_range("p", [p, p], 0.0, 1.0)
}

/// One for each of `count`.
pub(super) fn check_probabilities(p: &[f64], count: usize) -> Result<(), String> {
    if p.len() != count {
        return Err(format!("p must have a number for each of {count}, got {}", p.len()));
    }
    let sum: f64 = p.iter().sum();
    if p.iter().any(|p| !p.is_finite() || *p < 0.0) || sum <= 0.0 || !sum.is_finite() {
        return Err(format!("p must be numbers from 0 on, and not all 0, got {p:?}"));
    }
    Ok(())
}

fn check_colors([brightness, contrast, saturation, hue]: [[f64; 2]; 4]) -> Result<(), String> {
    let most = f64::from(f32::MAX);
    check_range("brightness", brightness, 0.0, most)?;
    check_range("contrast", contrast, 0.0, most)?;
    check_range("saturation", saturation, 0.0, most)?;
    check_range("hue", hue, -0.5, 0.5)
}

fn check_padding(padding: &[u32; 4]) -> Result<(), String> {
    match padding.iter().find(|side| **side > MAX_SIDE) {
        Some(side) => Err(format!("padding must be at most {MAX_SIDE}, got {side}")),
        None => Ok(()),
    }
}

fn check_sides(size: &[u32]) -> Result<(), String> {
    match size.iter().find(|side| !(1..=MAX_SIDE).contains(*side)) {
        Some(side) => Err(format!("sides must be 1..={MAX_SIDE}, got {side} in {size:?}")),
        None => Ok(()),
    }
}

fn check_range(name: &str, [low, high]: [f64; 2], min: f64, max: f64) -> Result<(), String> {
    if low.is_finite() && high.is_finite() && min <= low && low <= high && high <= max {
        return Ok(());
    }
    Err(format!("{name} must be within {min}..={max} and ascending, got {low}..={high}"))
}
