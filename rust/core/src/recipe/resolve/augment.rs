//! The automatic augmentations: one transform after another, drawn from a list, each with a magnitude
//! from a scale of its own (`torchvision/transforms/v2/_auto_augment.py`).

use super::warp::{Affine, Sampling, rotate, sharpened};
use super::{Step, color};
use crate::recipe::spec::{Policy, Transform};
use crate::rng::Draws;
use crate::{Blend, ColorOp, Size};

/// Draws for the transforms of this file.
///
/// # Errors
/// A sentence on why the image does not suit what was drawn.
pub(super) fn resolve(
    transform: &Transform,
    size: Size,
    draws: &mut Draws,
    steps: &mut Vec<Step>,
) -> Result<(), String> {
    match transform {
        Transform::AutoAugment { policy, interpolation, fill } => {
            let sampling = Sampling { interpolation: *interpolation, fill: *fill };
            auto_augment(*policy, size, sampling, draws, steps)
        }
        Transform::RandAugment { num_ops, magnitude, num_magnitude_bins, interpolation, fill } => {
            let sampling = Sampling { interpolation: *interpolation, fill: *fill };
            let numbers = [*num_ops, *magnitude, *num_magnitude_bins];
            rand_augment(numbers, size, sampling, draws, steps)
        }
        Transform::TrivialAugmentWide { num_magnitude_bins, interpolation, fill } => {
            let sampling = Sampling { interpolation: *interpolation, fill: *fill };
            trivial_augment(*num_magnitude_bins, size, sampling, draws, steps)
        }
        _ => Ok(()),
    }
}

/// The transforms, by torchvision's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Op {
    Identity,
    ShearX,
    ShearY,
    TranslateX,
    TranslateY,
    Rotate,
    Brightness,
    Color,
    Contrast,
    Sharpness,
    Posterize,
    Solarize,
    AutoContrast,
    Equalize,
    Invert,
}

/// All that `RandAugment` and `TrivialAugmentWide` draw from.
const DRAWN: [Op; 14] = [
    Op::Identity,
    Op::ShearX,
    Op::ShearY,
    Op::TranslateX,
    Op::TranslateY,
    Op::Rotate,
    Op::Brightness,
    Op::Color,
    Op::Contrast,
    Op::Sharpness,
    Op::Posterize,
    Op::Solarize,
    Op::AutoContrast,
    Op::Equalize,
];

/// Which scales magnitudes are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// `AutoAugment`'s and `RandAugment`'s.
    Usual,
    /// `TrivialAugmentWide`'s.
    Wide,
}

impl Op {
    /// Whether its magnitude may be negative.
    fn is_signed(self) -> bool {
        !matches!(
            self,
            Self::Identity
                | Self::Posterize
                | Self::Solarize
                | Self::AutoContrast
                | Self::Equalize
                | Self::Invert
        )
    }

    /// Its magnitude at a place of `bins`, for an image of `size`.
    fn magnitude(self, scale: Scale, place: u32, bins: u32, size: Size) -> f64 {
        let wide = scale == Scale::Wide;
        let up_to = |usual: f64, wide_one: f64| {
            linspace(0.0, if wide { wide_one } else { usual }, place, bins)
        };
        match self {
            Self::Identity | Self::AutoContrast | Self::Equalize | Self::Invert => 0.0,
            Self::ShearX | Self::ShearY => up_to(0.3, 0.99),
            Self::TranslateX => up_to(150.0 / 331.0 * f64::from(size.width), 32.0),
            Self::TranslateY => up_to(150.0 / 331.0 * f64::from(size.height), 32.0),
            Self::Rotate => up_to(30.0, 135.0),
            Self::Brightness | Self::Color | Self::Contrast | Self::Sharpness => up_to(0.9, 0.99),
            Self::Posterize => {
                let steps = (f64::from(bins) - 1.0) / if wide { 6.0 } else { 4.0 };
                f64::from((8.0 - single(f64::from(place) / steps)).round_ties_even())
            }
            Self::Solarize => linspace(1.0, 0.0, place, bins),
        }
    }

    /// `_apply_image_or_video_transform`.
    fn apply(
        self,
        magnitude: f64,
        size: Size,
        sampling: Sampling,
        steps: &mut Vec<Step>,
    ) -> Result<(), String> {
        let whole = magnitude.trunc();
        let corner = Some([0.0; 2]);
        let degrees = magnitude.atan().to_degrees();
        let affine = match self {
            Self::ShearX => Affine { shear: [degrees, 0.0], center: corner, ..Affine::IDENTITY },
            Self::ShearY => Affine { shear: [0.0, degrees], center: corner, ..Affine::IDENTITY },
            Self::TranslateX => Affine { translate: [whole, 0.0], ..Affine::IDENTITY },
            Self::TranslateY => Affine { translate: [0.0, whole], ..Affine::IDENTITY },
            Self::Rotate => return rotate(magnitude, false, None, size, sampling, steps),
            Self::Sharpness => {
                steps.extend(sharpened(size, 1.0 + magnitude));
                return Ok(());
            }
            colors => {
                steps.extend(colors.color(magnitude).map(Step::Color));
                return Ok(());
            }
        };
        steps.push(affine.step(size, sampling));
        Ok(())
    }

    /// What it does to every pixel for itself.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bits are 2 to 8; `as` saturates"
    )]
    fn color(self, magnitude: f64) -> Option<ColorOp> {
        Some(match self {
            Self::Brightness => ColorOp::Brightness(single(1.0 + magnitude)),
            Self::Color => ColorOp::Saturation(Blend::new(1.0 + magnitude)),
            Self::Contrast => ColorOp::Contrast(Blend::new(1.0 + magnitude)),
            Self::Posterize => ColorOp::Posterize(magnitude as u8),
            Self::Solarize => ColorOp::Solarize(single(255.0 * magnitude)),
            Self::AutoContrast => ColorOp::Autocontrast,
            Self::Equalize => ColorOp::Equalize,
            Self::Invert => ColorOp::Invert,
            _ => return None,
        })
    }
}

/// `torch.linspace` of at least two numbers, in float32 and fused as its kernel for CPUs.
fn linspace(start: f64, end: f64, place: u32, count: u32) -> f64 {
    let (start, end) = (single(start), single(end));
    let step = (end - start) / single(f64::from(count) - 1.0);
    let steps = |number: u32| single(f64::from(number));
    let value = if place < count / 2 {
        step.mul_add(steps(place), start)
    } else {
        (-step).mul_add(steps(count - place - 1), end)
    };
    f64::from(value)
}

fn single(value: f64) -> f32 {
    color::single(value)
}

/// Half of the signed ones are negative.
fn signed(op: Op, magnitude: f64, draws: &mut Draws) -> f64 {
    if op.is_signed() && draws.bernoulli(0.5) { -magnitude } else { magnitude }
}

fn any(draws: &mut Draws, count: usize) -> usize {
    usize::try_from(draws.below(count as u64)).expect("a place")
}

/// `RandAugment.forward`.
fn rand_augment(
    [num_ops, magnitude, bins]: [u32; 3],
    size: Size,
    sampling: Sampling,
    draws: &mut Draws,
    steps: &mut Vec<Step>,
) -> Result<(), String> {
    for _ in 0..num_ops {
        let op = DRAWN[any(draws, DRAWN.len())];
        let magnitude = signed(op, op.magnitude(Scale::Usual, magnitude, bins, size), draws);
        op.apply(magnitude, size, sampling, steps)?;
    }
    Ok(())
}

/// `TrivialAugmentWide.forward`.
fn trivial_augment(
    bins: u32,
    size: Size,
    sampling: Sampling,
    draws: &mut Draws,
    steps: &mut Vec<Step>,
) -> Result<(), String> {
    let op = DRAWN[any(draws, DRAWN.len())];
    let place = u32::try_from(any(draws, bins as usize)).expect("below the bins");
    let magnitude = signed(op, op.magnitude(Scale::Wide, place, bins, size), draws);
    op.apply(magnitude, size, sampling, steps)
}

/// `AutoAugment.forward`.
fn auto_augment(
    policy: Policy,
    size: Size,
    sampling: Sampling,
    draws: &mut Draws,
    steps: &mut Vec<Step>,
) -> Result<(), String> {
    const BINS: u32 = 10;
    let pairs = policies(policy);
    for &(op, tenths, place) in &pairs[any(draws, pairs.len())] {
        if draws.bernoulli(f64::from(tenths) / 10.0) {
            let magnitude = signed(op, op.magnitude(Scale::Usual, place, BINS, size), draws);
            op.apply(magnitude, size, sampling, steps)?;
        }
    }
    Ok(())
}

/// Two transforms, each with its probability in tenths and the place of its magnitude.
type Pair = [(Op, u8, u32); 2];

/// `AutoAugment._get_policies`.
fn policies(policy: Policy) -> &'static [Pair] {
    match policy {
        Policy::ImageNet => &IMAGENET,
        Policy::Cifar10 => &CIFAR10,
        Policy::Svhn => &SVHN,
    }
}

#[rustfmt::skip]
const IMAGENET: [Pair; 25] = [
    [(Op::Posterize, 4, 8), (Op::Rotate, 6, 9)],
    [(Op::Solarize, 6, 5), (Op::AutoContrast, 6, 0)],
    [(Op::Equalize, 8, 0), (Op::Equalize, 6, 0)],
    [(Op::Posterize, 6, 7), (Op::Posterize, 6, 6)],
    [(Op::Equalize, 4, 0), (Op::Solarize, 2, 4)],
    [(Op::Equalize, 4, 0), (Op::Rotate, 8, 8)],
    [(Op::Solarize, 6, 3), (Op::Equalize, 6, 0)],
    [(Op::Posterize, 8, 5), (Op::Equalize, 10, 0)],
    [(Op::Rotate, 2, 3), (Op::Solarize, 6, 8)],
    [(Op::Equalize, 6, 0), (Op::Posterize, 4, 6)],
    [(Op::Rotate, 8, 8), (Op::Color, 4, 0)],
    [(Op::Rotate, 4, 9), (Op::Equalize, 6, 0)],
    [(Op::Equalize, 0, 0), (Op::Equalize, 8, 0)],
    [(Op::Invert, 6, 0), (Op::Equalize, 10, 0)],
    [(Op::Color, 6, 4), (Op::Contrast, 10, 8)],
    [(Op::Rotate, 8, 8), (Op::Color, 10, 2)],
    [(Op::Color, 8, 8), (Op::Solarize, 8, 7)],
    [(Op::Sharpness, 4, 7), (Op::Invert, 6, 0)],
    [(Op::ShearX, 6, 5), (Op::Equalize, 10, 0)],
    [(Op::Color, 4, 0), (Op::Equalize, 6, 0)],
    [(Op::Equalize, 4, 0), (Op::Solarize, 2, 4)],
    [(Op::Solarize, 6, 5), (Op::AutoContrast, 6, 0)],
    [(Op::Invert, 6, 0), (Op::Equalize, 10, 0)],
    [(Op::Color, 6, 4), (Op::Contrast, 10, 8)],
    [(Op::Equalize, 8, 0), (Op::Equalize, 6, 0)],
];

#[rustfmt::skip]
const CIFAR10: [Pair; 25] = [
    [(Op::Invert, 1, 0), (Op::Contrast, 2, 6)],
    [(Op::Rotate, 7, 2), (Op::TranslateX, 3, 9)],
    [(Op::Sharpness, 8, 1), (Op::Sharpness, 9, 3)],
    [(Op::ShearY, 5, 8), (Op::TranslateY, 7, 9)],
    [(Op::AutoContrast, 5, 0), (Op::Equalize, 9, 0)],
    [(Op::ShearY, 2, 7), (Op::Posterize, 3, 7)],
    [(Op::Color, 4, 3), (Op::Brightness, 6, 7)],
    [(Op::Sharpness, 3, 9), (Op::Brightness, 7, 9)],
    [(Op::Equalize, 6, 0), (Op::Equalize, 5, 0)],
    [(Op::Contrast, 6, 7), (Op::Sharpness, 6, 5)],
    [(Op::Color, 7, 7), (Op::TranslateX, 5, 8)],
    [(Op::Equalize, 3, 0), (Op::AutoContrast, 4, 0)],
    [(Op::TranslateY, 4, 3), (Op::Sharpness, 2, 6)],
    [(Op::Brightness, 9, 6), (Op::Color, 2, 8)],
    [(Op::Solarize, 5, 2), (Op::Invert, 0, 0)],
    [(Op::Equalize, 2, 0), (Op::AutoContrast, 6, 0)],
    [(Op::Equalize, 2, 0), (Op::Equalize, 6, 0)],
    [(Op::Color, 9, 9), (Op::Equalize, 6, 0)],
    [(Op::AutoContrast, 8, 0), (Op::Solarize, 2, 8)],
    [(Op::Brightness, 1, 3), (Op::Color, 7, 0)],
    [(Op::Solarize, 4, 5), (Op::AutoContrast, 9, 0)],
    [(Op::TranslateY, 9, 9), (Op::TranslateY, 7, 9)],
    [(Op::AutoContrast, 9, 0), (Op::Solarize, 8, 3)],
    [(Op::Equalize, 8, 0), (Op::Invert, 1, 0)],
    [(Op::TranslateY, 7, 9), (Op::AutoContrast, 9, 0)],
];

#[rustfmt::skip]
const SVHN: [Pair; 25] = [
    [(Op::ShearX, 9, 4), (Op::Invert, 2, 0)],
    [(Op::ShearY, 9, 8), (Op::Invert, 7, 0)],
    [(Op::Equalize, 6, 0), (Op::Solarize, 6, 6)],
    [(Op::Invert, 9, 0), (Op::Equalize, 6, 0)],
    [(Op::Equalize, 6, 0), (Op::Rotate, 9, 3)],
    [(Op::ShearX, 9, 4), (Op::AutoContrast, 8, 0)],
    [(Op::ShearY, 9, 8), (Op::Invert, 4, 0)],
    [(Op::ShearY, 9, 5), (Op::Solarize, 2, 6)],
    [(Op::Invert, 9, 0), (Op::AutoContrast, 8, 0)],
    [(Op::Equalize, 6, 0), (Op::Rotate, 9, 3)],
    [(Op::ShearX, 9, 4), (Op::Solarize, 3, 3)],
    [(Op::ShearY, 8, 8), (Op::Invert, 7, 0)],
    [(Op::Equalize, 9, 0), (Op::TranslateY, 6, 6)],
    [(Op::Invert, 9, 0), (Op::Equalize, 6, 0)],
    [(Op::Contrast, 3, 3), (Op::Rotate, 8, 4)],
    [(Op::Invert, 8, 0), (Op::TranslateY, 0, 2)],
    [(Op::ShearY, 7, 6), (Op::Solarize, 4, 8)],
    [(Op::Invert, 6, 0), (Op::Rotate, 8, 4)],
    [(Op::ShearY, 3, 7), (Op::TranslateX, 9, 3)],
    [(Op::ShearX, 1, 6), (Op::Invert, 6, 0)],
    [(Op::Solarize, 7, 2), (Op::TranslateY, 6, 7)],
    [(Op::ShearY, 8, 4), (Op::Invert, 8, 0)],
    [(Op::ShearX, 7, 9), (Op::TranslateY, 8, 3)],
    [(Op::ShearY, 8, 5), (Op::AutoContrast, 7, 0)],
    [(Op::ShearX, 7, 2), (Op::Invert, 1, 0)],
];
