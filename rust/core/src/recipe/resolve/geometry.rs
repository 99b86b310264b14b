//! Draws and rounding of the transforms that crop, pad, resize and erase.

use super::Step;
use crate::recipe::MAX_SIDE;
use crate::recipe::spec::PaddingMode;
use crate::rng::Draws;
use crate::{Region, Size};

/// `RandomResizedCrop.make_params`: ten tries, then the largest centred crop of a legal ratio.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded lengths of pixels, checked against the image's size; `as` saturates"
)]
pub(super) fn random_resized_crop(
    size: Size,
    scale: [f64; 2],
    ratio: [f64; 2],
    draws: &mut Draws,
) -> (i64, i64, Size) {
    for _ in 0..10 {
        let [width, height] = sides(size, scale, ratio, draws);
        let crop = Size { width, height };
        let fits = |crop: u32, image: u32| 0 < crop && crop <= image;
        if fits(crop.width, size.width) && fits(crop.height, size.height) {
            let y = draws.below(u64::from(size.height - crop.height) + 1);
            let x = draws.below(u64::from(size.width - crop.width) + 1);
            return (offset(x), offset(y), crop);
        }
    }
    let (width, height) = (f64::from(size.width), f64::from(size.height));
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

/// Sides of a part of the image of random area and ratio: the first over the second.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded lengths of pixels; `as` saturates"
)]
fn sides(image: Size, scale: [f64; 2], ratio: [f64; 2], draws: &mut Draws) -> [u32; 2] {
    let image = f64::from(image.width) * f64::from(image.height);
    let area = image * draws.uniform(scale[0], scale[1]);
    let aspect = draws.uniform(ratio[0].ln(), ratio[1].ln()).exp();
    [area * aspect, area / aspect].map(|square| square.sqrt().round_ties_even() as u32)
}

/// `RandomErasing.make_params`: ten tries for a part that leaves some of the image.
pub(super) fn erased(
    size: Size,
    scale: [f64; 2],
    ratio: [f64; 2],
    draws: &mut Draws,
) -> Option<Region> {
    (0..10)
        .find_map(|_| {
            let [height, width] = sides(size, scale, ratio, draws);
            if height >= size.height || width >= size.width {
                return None;
            }
            let mut place = |room: u32| u32::try_from(draws.below(u64::from(room) + 1)).ok();
            let (y, x) = (place(size.height - height)?, place(size.width - width)?);
            Some(Region { x, y, width, height })
        })
        .filter(|region| region.width > 0 && region.height > 0)
}

pub(super) fn offset(drawn: u64) -> i64 {
    i64::try_from(drawn).expect("offsets are below a side's length")
}

/// `_compute_resized_output_size` of torchvision.transforms.functional.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "truncation towards zero is what Python's int() does there; `as` saturates"
)]
pub(in crate::recipe) fn resized(
    size: Size,
    wanted: &[u32],
    max_size: Option<u32>,
) -> Result<Size, String> {
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
pub(super) fn centered(image: u32, crop: u32) -> i64 {
    if crop > image {
        return -i64::from((crop - image) / 2);
    }
    // int(round((image - crop) / 2)) with Python's ties to even.
    let twice = i64::from(image - crop);
    let half = twice / 2;
    half + i64::from(twice % 2 == 1 && half % 2 == 1)
}

/// `RandomCrop.make_params`, and `transform`.
pub(super) fn random_crop(
    size: Size,
    [height, width]: [u32; 2],
    (sides, mode, fill): ([u32; 4], PaddingMode, [u8; 3]),
    pad_if_needed: bool,
    draws: &mut Draws,
    steps: &mut Vec<Step>,
) -> Result<(), String> {
    let [left, top, right, bottom] = sides;
    let (left, right) = padded(size.width, width, [left, right], pad_if_needed);
    let (top, bottom) = padded(size.height, height, [top, bottom], pad_if_needed);
    let crop = Size { width, height };
    let x = random_offset(size.width + left + right, width, draws);
    let y = random_offset(size.height + top + bottom, height, draws);
    let (Some(x), Some(y)) = (x, y) else {
        return Err(format!(
            "RandomCrop of {crop} does not fit the image of {size}; pass pad_if_needed=True"
        ));
    };
    if mode == PaddingMode::Constant {
        let (x, y) = (x - i64::from(left), y - i64::from(top));
        steps.push(Step::Crop { x, y, size: crop, fill });
    } else {
        steps.push(pad([left, top, right, bottom], mode, fill, size)?);
        steps.push(Step::Crop { x, y, size: crop, fill });
    }
    Ok(())
}

/// `pad` of torchvision.transforms.v2.functional.
pub(super) fn pad(
    sides: [u32; 4],
    mode: PaddingMode,
    fill: [u8; 3],
    image: Size,
) -> Result<Step, String> {
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
pub(super) fn padded(
    image: u32,
    crop: u32,
    [before, behind]: [u32; 2],
    if_needed: bool,
) -> (u32, u32) {
    let missing = crop.saturating_sub(image + before + behind);
    let more = if if_needed { missing } else { 0 };
    (before + more, behind + more)
}

/// Where a crop begins along one side; `None` if it does not fit.
pub(super) fn random_offset(image: u32, crop: u32, draws: &mut Draws) -> Option<i64> {
    Some(offset(draws.below(u64::from(image.checked_sub(crop)?) + 1)))
}
