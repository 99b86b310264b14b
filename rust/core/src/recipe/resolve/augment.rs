//! The automatic augmentations: one transform after another, drawn from a list, each with a magnitude
//! from a scale of its own (`torchvision/transforms/v2/_auto_augment.py`).

mod policies;

use super::warp::{Affine, Sampling, rotate, sharpened};
use super::{Step, color};
use crate::recipe::spec::{Policy, Transform};
use crate::rng::Draws;
use crate::{Blend, ColorOp, Size};
use policies::policies;

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
        Transform::AugMix {
            severity,
            mixture_width,
            chain_depth,
            alpha,
            all_ops,
            interpolation,
            fill,
        } => {
            let chains = Chains {
                severity: *severity,
                width: *mixture_width,
                depth: *chain_depth,
                alpha: *alpha,
                ops: if *all_ops { &MIXED } else { &MIXED[..PARTIAL] },
                sampling: Sampling { interpolation: *interpolation, fill: *fill },
            };
            chains.draw(size, draws, steps)
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

/// All that `AugMix` draws from, and how many of them without `all_ops`.
const MIXED: [Op; 13] = [
    Op::ShearX,
    Op::ShearY,
    Op::TranslateX,
    Op::TranslateY,
    Op::Rotate,
    Op::Posterize,
    Op::Solarize,
    Op::AutoContrast,
    Op::Equalize,
    Op::Brightness,
    Op::Color,
    Op::Contrast,
    Op::Sharpness,
];
const PARTIAL: usize = 9;

/// Which scales magnitudes are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scale {
    /// `AutoAugment`'s and `RandAugment`'s.
    Usual,
    /// `TrivialAugmentWide`'s.
    Wide,
    /// `AugMix`'s.
    Mixed,
}

impl Scale {
    /// How far an image may be moved along a side.
    fn reach(self, side: u32) -> f64 {
        match self {
            Self::Mixed => f64::from(side) / 3.0,
            Self::Usual | Self::Wide => 150.0 / 331.0 * f64::from(side),
        }
    }
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
            Self::TranslateX => up_to(scale.reach(size.width), 32.0),
            Self::TranslateY => up_to(scale.reach(size.height), 32.0),
            Self::Rotate => up_to(30.0, 135.0),
            Self::Brightness | Self::Color | Self::Contrast | Self::Sharpness => up_to(0.9, 0.99),
            Self::Posterize => {
                let steps = (f64::from(bins) - 1.0) / if wide { 6.0 } else { 4.0 };
                let most = if scale == Scale::Mixed { 4.0 } else { 8.0 };
                f64::from((most - single(f64::from(place) / steps)).round_ties_even())
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

/// `AugMix`'s arguments.
struct Chains {
    severity: u32,
    width: u32,
    depth: Option<u32>,
    alpha: f64,
    ops: &'static [Op],
    sampling: Sampling,
}

impl Chains {
    /// `AugMix.forward`: its weights are products and differences in float32.
    fn draw(&self, size: Size, draws: &mut Draws, steps: &mut Vec<Step>) -> Result<(), String> {
        const BINS: u32 = 10;
        let own = draws.beta(self.alpha);
        let shares = draws.dirichlet(self.alpha, self.width as usize);
        let mut layers = Vec::with_capacity(shares.len());
        for share in shares {
            let depth = self.depth.map_or_else(|| 1 + any(draws, 3), |depth| depth as usize);
            let mut chain = Vec::new();
            for _ in 0..depth {
                let op = self.ops[any(draws, self.ops.len())];
                let place = u32::try_from(any(draws, self.severity as usize)).expect("at most 10");
                let magnitude = op.magnitude(Scale::Mixed, place, BINS, size);
                let magnitude = signed(op, magnitude, draws);
                op.apply(magnitude, size, self.sampling, &mut chain)?;
            }
            layers.push((single(share) * single(1.0 - own), chain));
        }
        steps.push(Step::Mix { weight: single(own), layers });
        Ok(())
    }
}
