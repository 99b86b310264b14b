//! Draws: transforms with ranges become steps with numbers, for an image of a given size.
//!
//! Distributions, rounding and fallbacks are those of `torchvision/transforms/v2` (0.26); each
//! function names the method it follows.

mod color;

use super::MAX_SIDE;
use super::spec::{PaddingMode, Transform};
use crate::coeffs::Interpolation;
use crate::rng::{Draws, EpochKey};
use crate::{ColorOp, Size};

/// What happens to the canvas, in numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
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
            Self::FlipX | Self::FlipY | Self::Color(_) => before,
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
    for (place, transform) in (0..).zip(transforms) {
        let mut draws = key.epoch.draws(key.position, place, key.group);
        size = resolve_list([transform], size, &mut draws, &mut steps)?;
    }
    Ok(steps)
}

/// Resolves one after the other, from the same draws; the canvas's size after them.
fn resolve_list<'a>(
    transforms: impl IntoIterator<Item = &'a Transform>,
    mut size: Size,
    draws: &mut Draws,
    steps: &mut Vec<Step>,
) -> Result<Size, String> {
    for transform in transforms {
        let first = steps.len();
        resolve_one(transform, size, draws, steps)?;
        size = steps[first..].iter().fold(size, |size, step| step.size(size));
    }
    Ok(size)
}

fn resolve_one(
    transform: &Transform,
    size: Size,
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
        Transform::RandomCrop {
            size: [height, width],
            padding,
            pad_if_needed,
            fill,
            padding_mode,
        } => {
            let [left, top, right, bottom] = padding.unwrap_or_default();
            let (left, right) = padded(size.width, *width, [left, right], *pad_if_needed);
            let (top, bottom) = padded(size.height, *height, [top, bottom], *pad_if_needed);
            let (crop, sides) =
                (Size { width: *width, height: *height }, [left, top, right, bottom]);
            let x = random_offset(size.width + left + right, *width, draws);
            let y = random_offset(size.height + top + bottom, *height, draws);
            let (Some(x), Some(y)) = (x, y) else {
                return Err(format!(
                    "RandomCrop of {crop} does not fit the image of {size}; pass pad_if_needed=True"
                ));
            };
            if *padding_mode == PaddingMode::Constant {
                let (x, y) = (x - i64::from(left), y - i64::from(top));
                steps.push(Step::Crop { x, y, size: crop, fill: *fill });
            } else {
                steps.push(pad(sides, *padding_mode, *fill, size)?);
                steps.push(Step::Crop { x, y, size: crop, fill: *fill });
            }
        }
        Transform::RandomHorizontalFlip { p } => {
            steps.extend(draws.bernoulli(*p).then_some(Step::FlipX));
        }
        Transform::RandomVerticalFlip { p } => {
            steps.extend(draws.bernoulli(*p).then_some(Step::FlipY));
        }
        Transform::RandomApply { transforms, p } => {
            if draws.bernoulli(*p) {
                resolve_list(transforms, size, draws, steps)?;
            }
        }
        Transform::RandomChoice { transforms, p } => {
            let chosen = &transforms[weighted(p, draws)];
            resolve_one(chosen, size, draws, steps)?;
        }
        Transform::RandomOrder { transforms } => {
            let order = permutation(transforms.len(), draws);
            resolve_list(order.into_iter().map(|place| &transforms[place]), size, draws, steps)?;
        }
        colors => steps.extend(color::ops(colors, draws).into_iter().map(Step::Color)),
    }
    Ok(())
}

/// `RandomResizedCrop.make_params`: ten tries, then the largest centred crop of a legal ratio.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded lengths of pixels, checked against the image's size; `as` saturates"
)]
fn random_resized_crop(
    size: Size,
    scale: [f64; 2],
    ratio: [f64; 2],
    draws: &mut Draws,
) -> (i64, i64, Size) {
    let (width, height) = (f64::from(size.width), f64::from(size.height));
    for _ in 0..10 {
        let area = width * height * draws.uniform(scale[0], scale[1]);
        let aspect = draws.uniform(ratio[0].ln(), ratio[1].ln()).exp();
        let crop = Size {
            width: (area * aspect).sqrt().round_ties_even() as u32,
            height: (area / aspect).sqrt().round_ties_even() as u32,
        };
        let fits = |crop: u32, image: u32| 0 < crop && crop <= image;
        if fits(crop.width, size.width) && fits(crop.height, size.height) {
            let y = draws.below(u64::from(size.height - crop.height) + 1);
            let x = draws.below(u64::from(size.width - crop.width) + 1);
            return (offset(x), offset(y), crop);
        }
    }
    let aspect = width / height;
    let crop = if aspect < ratio[0] {
        Size { width: size.width, height: (width / ratio[0]).round_ties_even() as u32 }
    } else if aspect > ratio[1] {
        Size { width: (height * ratio[1]).round_ties_even() as u32, height: size.height }
    } else {
        size
    };
    let crop =
        Size { width: crop.width.clamp(1, size.width), height: crop.height.clamp(1, size.height) };
    let middle = |image: u32, crop: u32| i64::from((image - crop) / 2);
    (middle(size.width, crop.width), middle(size.height, crop.height), crop)
}

fn offset(drawn: u64) -> i64 {
    i64::try_from(drawn).expect("offsets are below a side's length")
}

/// `_compute_resized_output_size` of torchvision.transforms.functional.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "truncation towards zero is what Python's int() does there; `as` saturates"
)]
pub(super) fn resized(size: Size, wanted: &[u32], max_size: Option<u32>) -> Result<Size, String> {
    if let [height, width] = *wanted {
        return Ok(Size { width, height });
    }
    let (short, long) = (size.width.min(size.height), size.width.max(size.height));
    let mut new_short = wanted[0];
    let mut new_long = (f64::from(new_short) * f64::from(long) / f64::from(short)) as u32;
    if let Some(max_size) = max_size.filter(|max_size| new_long > *max_size) {
        let shrunk = f64::from(max_size) * f64::from(new_short) / f64::from(new_long);
        (new_short, new_long) = (shrunk as u32, max_size);
    }
    if new_short == 0 || new_long > MAX_SIDE {
        return Err(format!(
            "Resize({}) would make the image of {size} {new_short} by {new_long}; sides must be \
             1..={MAX_SIDE}",
            wanted[0]
        ));
    }
    Ok(if size.width <= size.height {
        Size { width: new_short, height: new_long }
    } else {
        Size { width: new_long, height: new_short }
    })
}

/// Offset of `CenterCrop` along one side; negative where it pads.
fn centered(image: u32, crop: u32) -> i64 {
    if crop > image {
        return -i64::from((crop - image) / 2);
    }
    // int(round((image - crop) / 2)) with Python's ties to even.
    let twice = i64::from(image - crop);
    let half = twice / 2;
    half + i64::from(twice % 2 == 1 && half % 2 == 1)
}

/// `pad` of torchvision.transforms.v2.functional.
fn pad(sides: [u32; 4], mode: PaddingMode, fill: [u8; 3], image: Size) -> Result<Step, String> {
    let [left, top, ..] = sides;
    let step = Step::Pad { sides, mode };
    // Mirrored, the image reaches that far.
    let more = match mode {
        PaddingMode::Constant => {
            let (x, y) = (-i64::from(left), -i64::from(top));
            return Ok(Step::Crop { x, y, size: step.size(image), fill });
        }
        PaddingMode::Edge => return Ok(step),
        PaddingMode::Reflect => 1,
        PaddingMode::Symmetric => 0,
    };
    let [left, top, right, bottom] = sides;
    for (side, padding) in [(image.width, left.max(right)), (image.height, top.max(bottom))] {
        if padding + more > side {
            let least = padding + more;
            let mode = if more == 1 { "reflect" } else { "symmetric" };
            return Err(format!(
                "padding_mode=\"{mode}\" by {padding} needs sides of at least {least}, the image is {image}"
            ));
        }
    }
    Ok(step)
}

/// `RandomCrop.make_params` along one side: what is padded before and behind.
fn padded(image: u32, crop: u32, [before, behind]: [u32; 2], if_needed: bool) -> (u32, u32) {
    let missing = crop.saturating_sub(image + before + behind);
    let more = if if_needed { missing } else { 0 };
    (before + more, behind + more)
}

/// Where a crop begins along one side; `None` if it does not fit.
fn random_offset(image: u32, crop: u32, draws: &mut Draws) -> Option<i64> {
    Some(offset(draws.below(u64::from(image.checked_sub(crop)?) + 1)))
}

/// A place by its probability; they need not add up to 1.
fn weighted(p: &[f64], draws: &mut Draws) -> usize {
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
