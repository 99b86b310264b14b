//! Draws: transforms with ranges become steps with numbers, for an image of a given size.
//!
//! Distributions, rounding and fallbacks are those of `torchvision/transforms/v2` (0.26); each
//! function names the method it follows.

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
        let first = steps.len();
        resolve_one(transform, size, &mut draws, &mut steps)?;
        size = steps[first..].iter().fold(size, |size, step| step.size(size));
    }
    Ok(steps)
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
        Transform::ColorJitter { brightness, contrast, saturation, hue } => {
            let ops = color_jitter([*brightness, *contrast, *saturation, *hue], draws);
            steps.extend(ops.map(Step::Color));
        }
        Transform::Grayscale => steps.push(Step::Color(ColorOp::Grayscale)),
        Transform::RandomGrayscale { p } => {
            steps.extend(draws.bernoulli(*p).then_some(Step::Color(ColorOp::Grayscale)));
        }
        Transform::RandomInvert { p } => {
            steps.extend(draws.bernoulli(*p).then_some(Step::Color(ColorOp::Invert)));
        }
        Transform::RandomPosterize { bits, p } => {
            steps.extend(draws.bernoulli(*p).then_some(Step::Color(ColorOp::Posterize(*bits))));
        }
        Transform::RandomSolarize { threshold, p } => {
            let op = ColorOp::Solarize(single(*threshold));
            steps.extend(draws.bernoulli(*p).then_some(Step::Color(op)));
        }
        Transform::RandomPhotometricDistort { brightness, contrast, saturation, hue, p } => {
            let ranges = [*brightness, *contrast, *saturation, *hue];
            steps.extend(photometric_distort(ranges, *p, draws).map(Step::Color));
        }
        Transform::ToDtype { .. } | Transform::Normalize { .. } => {}
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

/// `ColorJitter.make_params`: the four changes in random order, each by a uniform factor.
fn color_jitter(ranges: [Option<[f64; 2]>; 4], draws: &mut Draws) -> impl Iterator<Item = ColorOp> {
    let order = permutation::<4>(draws);
    let factors = ranges.map(|range| {
        let [low, high] = range.unwrap_or_default();
        let factor = single(draws.uniform(low, high));
        range.map(|_| factor)
    });
    order.into_iter().filter_map(move |which| {
        let factor = factors[usize::from(which)]?;
        Some(match which {
            0 => ColorOp::Brightness(factor),
            1 => ColorOp::Contrast(factor),
            2 => ColorOp::Saturation(factor),
            _ => ColorOp::Hue(factor),
        })
    })
}

/// `RandomPhotometricDistort.make_params`: each change with its probability, contrast before or
/// behind saturation and hue, then perhaps the channels in another order.
fn photometric_distort(
    ranges: [[f64; 2]; 4],
    p: f64,
    draws: &mut Draws,
) -> impl Iterator<Item = ColorOp> {
    let [brightness, contrast, saturation, hue] = ranges.map(|[low, high]| {
        let factor = single(draws.uniform(low, high));
        draws.bernoulli(p).then_some(factor)
    });
    let contrast = contrast.map(ColorOp::Contrast);
    let (before, behind) = if draws.bernoulli(0.5) { (contrast, None) } else { (None, contrast) };
    let channels = permutation::<3>(draws);
    let permute = draws.bernoulli(p).then_some(ColorOp::Permute(channels));
    [
        brightness.map(ColorOp::Brightness),
        before,
        saturation.map(ColorOp::Saturation),
        hue.map(ColorOp::Hue),
        behind,
        permute,
    ]
    .into_iter()
    .flatten()
}

/// Every order of `0..N` alike.
fn permutation<const N: usize>(draws: &mut Draws) -> [u8; N] {
    let mut order = std::array::from_fn(|place| u8::try_from(place).expect("few places"));
    for last in (1..N).rev() {
        let other = usize::try_from(draws.below(last as u64 + 1)).expect("below N");
        order.swap(last, other);
    }
    order
}

#[allow(clippy::cast_possible_truncation, reason = "factors are float32 in torchvision's kernels")]
fn single(factor: f64) -> f32 {
    factor as f32
}

#[cfg(test)]
mod tests;
