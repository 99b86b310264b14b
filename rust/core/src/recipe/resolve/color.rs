//! Draws of the transforms that change colours.

use super::permutation;
use crate::recipe::spec::Transform;
use crate::rng::Draws;
use crate::{Blend, ColorOp};

/// What a transform does to the colours; nothing for one that leaves them.
pub(super) fn ops(transform: &Transform, draws: &mut Draws) -> Vec<ColorOp> {
    let mut perhaps = |p: f64, op| Vec::from_iter(draws.bernoulli(p).then_some(op));
    match *transform {
        Transform::Grayscale => vec![ColorOp::Grayscale],
        Transform::RandomGrayscale { p } => perhaps(p, ColorOp::Grayscale),
        Transform::RandomInvert { p } => perhaps(p, ColorOp::Invert),
        Transform::RandomAutocontrast { p } => perhaps(p, ColorOp::Autocontrast),
        Transform::RandomEqualize { p } => perhaps(p, ColorOp::Equalize),
        Transform::RandomPosterize { bits, p } => perhaps(p, ColorOp::Posterize(bits)),
        Transform::RandomSolarize { threshold, p } => {
            perhaps(p, ColorOp::Solarize(single(threshold)))
        }
        Transform::ColorJitter { brightness, contrast, saturation, hue } => {
            color_jitter([brightness, contrast, saturation, hue], draws)
        }
        Transform::RandomPhotometricDistort { brightness, contrast, saturation, hue, p } => {
            photometric_distort([brightness, contrast, saturation, hue], p, draws)
        }
        _ => Vec::new(),
    }
}

/// `ColorJitter.make_params`: the four changes in random order, each by a uniform factor.
pub(super) fn color_jitter(ranges: [Option<[f64; 2]>; 4], draws: &mut Draws) -> Vec<ColorOp> {
    let order = permutation(4, draws);
    let factors = ranges.map(|range| {
        let [low, high] = range.unwrap_or_default();
        let factor = single(draws.uniform(low, high));
        range.map(|_| factor)
    });
    let op = |which: usize| {
        let factor = factors[which]?;
        Some(match which {
            0 => ColorOp::Brightness(factor),
            1 => ColorOp::Contrast(Blend::new(f64::from(factor))),
            2 => ColorOp::Saturation(Blend::new(f64::from(factor))),
            _ => ColorOp::Hue(factor),
        })
    };
    order.into_iter().filter_map(op).collect()
}

/// `RandomPhotometricDistort.make_params`: each change with its probability, contrast before or
/// behind saturation and hue, then perhaps the channels in another order.
fn photometric_distort(ranges: [[f64; 2]; 4], p: f64, draws: &mut Draws) -> Vec<ColorOp> {
    let [brightness, contrast, saturation, hue] = ranges.map(|[low, high]| {
        let factor = single(draws.uniform(low, high));
        draws.bernoulli(p).then_some(factor)
    });
    let blend = |factor: f32| Blend::new(f64::from(factor));
    let contrast = contrast.map(|factor| ColorOp::Contrast(blend(factor)));
    let (before, behind) = if draws.bernoulli(0.5) { (contrast, None) } else { (None, contrast) };
    let order = permutation(3, draws);
    let channels = [0, 1, 2].map(|place| u8::try_from(order[place]).expect("below 3"));
    let permute = draws.bernoulli(p).then_some(ColorOp::Permute(channels));
    let changes = [
        brightness.map(ColorOp::Brightness),
        before,
        saturation.map(|factor| ColorOp::Saturation(blend(factor))),
        hue.map(ColorOp::Hue),
        behind,
        permute,
    ];
    changes.into_iter().flatten().collect()
}

#[allow(clippy::cast_possible_truncation, reason = "factors are float32 in torchvision's kernels")]
pub(super) fn single(factor: f64) -> f32 {
    factor as f32
}
