//! Draws: transforms with ranges become steps with numbers, for an image of a given size.
//!
//! Distributions, rounding and fallbacks are those of `torchvision/transforms/v2` (0.26); each
//! function names the method it follows.

mod augment;
mod color;
mod geometry;
mod warp;

pub(super) use geometry::resized;

use super::MAX_SIDE;
use super::spec::{ErasedBy, PaddingMode, Transform};
use crate::coeffs::Interpolation;
use crate::rng::{Draws, EpochKey};
use crate::{ColorOp, DType, Fill, Gather, Region, Size};
use geometry::{centered, erased, pad, random_crop, random_resized_crop};

/// What happens to the canvas, in numbers.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    /// The canvas becomes the given rectangle of itself; what lies outside is `fill`.
    Crop { x: i64, y: i64, size: Size, fill: [u8; 3] },
    /// The canvas grows by left, top, right and bottom, and shows more of itself there.
    Pad { sides: [u32; 4], mode: PaddingMode },
    /// The canvas is resampled.
    Resize { size: Size, interpolation: Interpolation, antialias: bool },
    /// Left and right change places.
    FlipX,
    /// Top and bottom change places.
    FlipY,
    /// Every pixel changes its colour.
    Color(ColorOp),
    /// A new canvas is made of some pixels each.
    Gather(Gather),
    /// A Gaussian of so many pixels across and down, mirrored at the border.
    Blur { kernel: [u32; 2], sigma: f64 },
    /// The canvas is mixed with what lists of steps make of it, each by itself: its own weight, and
    /// theirs.
    Mix { weight: f32, layers: Vec<(f32, Vec<Step>)> },
    /// A part of the canvas gets one value a channel, in the units of its place, or noise.
    Erase { region: Region, fill: Fill, units: Units },
}

/// What numbers mean at a place of the recipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Units {
    /// 8-bit values.
    Pixels,
    /// Floats that are not normalised yet.
    Floats,
    /// What is delivered.
    Final,
}

impl Units {
    /// What they are after a transform.
    fn after(self, transform: &Transform) -> Self {
        match transform {
            Transform::Normalize { .. } => Self::Final,
            Transform::ToDtype { dtype, .. } if self == Self::Pixels && *dtype != DType::UInt8 => {
                Self::Floats
            }
            _ => self,
        }
    }
}

impl Step {
    /// The canvas's size after it.
    pub(crate) fn size(&self, before: Size) -> Size {
        match *self {
            Self::Crop { size, .. } | Self::Resize { size, .. } => size,
            Self::Pad { sides: [left, top, right, bottom], .. } => {
                let Size { width, height } = before;
                Size { width: width + left + right, height: height + top + bottom }
            }
            Self::Gather(gather) => gather.size(before),
            Self::FlipX
            | Self::FlipY
            | Self::Color(_)
            | Self::Blur { .. }
            | Self::Mix { .. }
            | Self::Erase { .. } => before,
        }
    }
}

/// Names the random streams of one sample and draw group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DrawKey {
    pub(crate) epoch: EpochKey,
    pub(crate) position: u64,
    pub(crate) group: u16,
}

/// Resolves all transforms for an upright image of `size`.
///
/// # Errors
/// A sentence on why the image does not suit the recipe.
pub(crate) fn resolve(
    transforms: &[Transform],
    mut size: Size,
    key: DrawKey,
) -> Result<Vec<Step>, String> {
    let mut steps = Vec::with_capacity(transforms.len() + 1);
    let mut units = Units::Pixels;
    for (place, transform) in (0..).zip(transforms) {
        let mut draws = key.epoch.draws(key.position, place, key.group);
        size = resolve_list([transform], size, units, &mut draws, &mut steps)?;
        units = units.after(transform);
    }
    Ok(steps)
}

/// Resolves one after the other, from the same draws; the canvas's size after them.
fn resolve_list<'a>(
    transforms: impl IntoIterator<Item = &'a Transform>,
    mut size: Size,
    units: Units,
    draws: &mut Draws,
    steps: &mut Vec<Step>,
) -> Result<Size, String> {
    for transform in transforms {
        let first = steps.len();
        resolve_one(transform, size, units, draws, steps)?;
        size = steps[first..].iter().fold(size, |size, step| step.size(size));
    }
    Ok(size)
}

fn resolve_one(
    transform: &Transform,
    size: Size,
    units: Units,
    draws: &mut Draws,
    steps: &mut Vec<Step>,
) -> Result<(), String> {
    match transform {
        Transform::RandomResizedCrop {
            size: [height, width],
            scale,
            ratio,
            interpolation,
            antialias,
        } => {
            let (x, y, crop) = random_resized_crop(size, *scale, *ratio, draws);
            steps.push(Step::Crop { x, y, size: crop, fill: [0; 3] });
            steps.push(Step::Resize {
                size: Size { width: *width, height: *height },
                interpolation: *interpolation,
                antialias: *antialias,
            });
        }
        Transform::Resize { size: wanted, max_size, interpolation, antialias } => {
            steps.push(Step::Resize {
                size: resized(size, wanted, *max_size)?,
                interpolation: *interpolation,
                antialias: *antialias,
            });
        }
        Transform::CenterCrop { size: [height, width] } => {
            let crop = Size { width: *width, height: *height };
            steps.push(Step::Crop {
                x: centered(size.width, crop.width),
                y: centered(size.height, crop.height),
                size: crop,
                fill: [0; 3],
            });
        }
        Transform::Crop { top, left, height, width } => {
            let size = Size { width: *width, height: *height };
            let (x, y) = (i64::from(*left), i64::from(*top));
            steps.push(Step::Crop { x, y, size, fill: [0; 3] });
        }
        Transform::Pad { padding, fill, padding_mode } => {
            let step = pad(*padding, *padding_mode, *fill, size)?;
            let Size { width, height } = step.size(size);
            let longest = width.max(height);
            if longest > MAX_SIDE {
                return Err(format!("Pad makes a side of {longest}; sides must be 1..={MAX_SIDE}"));
            }
            steps.push(step);
        }
        Transform::RandomCrop { size: crop, padding, pad_if_needed, fill, padding_mode } => {
            let padding = (padding.unwrap_or_default(), *padding_mode, *fill);
            random_crop(size, *crop, padding, *pad_if_needed, draws, steps)?;
        }
        Transform::RandomHorizontalFlip { p } => {
            steps.extend(draws.bernoulli(*p).then_some(Step::FlipX));
        }
        Transform::RandomVerticalFlip { p } => {
            steps.extend(draws.bernoulli(*p).then_some(Step::FlipY));
        }
        Transform::RandomRotation { .. }
        | Transform::RandomAffine { .. }
        | Transform::RandomPerspective { .. }
        | Transform::RandomAdjustSharpness { .. }
        | Transform::GaussianBlur { .. } => warp::resolve(transform, size, draws, steps)?,
        Transform::AutoAugment { .. }
        | Transform::RandAugment { .. }
        | Transform::TrivialAugmentWide { .. }
        | Transform::AugMix { .. } => augment::resolve(transform, size, draws, steps)?,
        Transform::RandomApply { transforms, p } => {
            if draws.bernoulli(*p) {
                resolve_list(transforms, size, units, draws, steps)?;
            }
        }
        Transform::RandomChoice { transforms, p } => {
            let chosen = &transforms[weighted(p, draws)];
            resolve_one(chosen, size, units, draws, steps)?;
        }
        Transform::RandomOrder { transforms } => {
            let order = permutation(transforms.len(), draws);
            let ordered = order.into_iter().map(|place| &transforms[place]);
            resolve_list(ordered, size, units, draws, steps)?;
        }
        Transform::RandomErasing { p, scale, ratio, value } => {
            if draws.bernoulli(*p) {
                let region = erased(size, *scale, *ratio, draws);
                let fill = match value {
                    ErasedBy::Value(value) => Fill::Value(*value),
                    ErasedBy::Noise(_) => {
                        let normalize = units != Units::Final;
                        Fill::Noise { key: draws.key(), normalize }
                    }
                };
                steps.extend(region.map(|region| Step::Erase { region, fill, units }));
            }
        }
        colors => steps.extend(color::ops(colors, draws).into_iter().map(Step::Color)),
    }
    Ok(())
}

/// A place by its probability; they need not add up to 1.
pub(super) fn weighted(p: &[f64], draws: &mut Draws) -> usize {
    let at = draws.uniform(0.0, p.iter().sum());
    let mut end = 0.0;
    let found = p.iter().position(|part| {
        end += part;
        at < end
    });
    // Sums round.
    found.unwrap_or_else(|| p.iter().rposition(|part| *part > 0.0).unwrap_or(0))
}

/// Every order of so many places alike.
fn permutation(count: usize, draws: &mut Draws) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        let other = usize::try_from(draws.below(last as u64 + 1)).expect("a place");
        order.swap(last, other);
    }
    order
}

#[cfg(test)]
mod tests;
