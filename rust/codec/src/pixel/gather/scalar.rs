//! The oracle: float32 operations in torch's order, fused where ATen's kernels for CPUs fuse.
//!
//! Sources: `_affine_grid`, `_perspective_grid` and `_apply_grid_transform` of
//! `torchvision/transforms/v2/functional/_geometry.py`, `GridSamplerKernel.cpp` of ATen,
//! `adjust_sharpness_image` of `_color.py`.

#![allow(
    clippy::inline_always,
    reason = "each level's functions must compile this code with their own instructions"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers are checked or clamped to what the type holds first"
)]

use super::{Places, Whole};
use forebay_core::Warp;

#[inline(always)]
pub(super) fn warp<const C: usize>(
    warp: &Warp,
    input: Whole<'_>,
    y: u32,
    places: &mut Places,
    row: &mut [u8],
) {
    locate(warp, input, y, places);
    let places = places.across.iter().zip(&places.down);
    let pixels = row.as_chunks_mut::<C>().0.iter_mut().zip(places);
    if warp.bilinear {
        for (pixel, (&x, &y)) in pixels {
            *pixel = bilinear(warp, input, x, y);
        }
    } else {
        let fill = warp.fill.unwrap_or_default();
        for (pixel, (x, y)) in pixels {
            let at = pixel_at::<C>(input, x.round_ties_even(), y.round_ties_even());
            *pixel = at.map_or(std::array::from_fn(|channel| fill[channel]), |at| *at);
        }
    }
}

/// Where the row's pixels lie in the input: 0 is the first one's middle.
#[inline(always)]
fn locate(warp: &Warp, input: Whole<'_>, y: u32, places: &mut Places) {
    let [left, top] = warp.origin;
    let [to_across, to_down] = warp.rows;
    let half = [input.size.width, input.size.height].map(|side| side as f32 / 2.0);
    let down = y as f32 + top;
    let unnormalized = |grid: f32, half: f32| (grid + 1.0).mul_add(half, -0.5);
    let columns = (places.first..).zip(places.across.iter_mut().zip(&mut places.down));
    for (column, (x, y)) in columns {
        let across = column as f32 + left;
        let [mut grid_x, mut grid_y] =
            [to_across, to_down].map(|[a, b, c]| across * a + down * b + c);
        if let Some([g, h]) = warp.projection {
            let divisor = across * g + down * h + 1.0;
            (grid_x, grid_y) = (grid_x / divisor - 1.0, grid_y / divisor - 1.0);
        }
        (*x, *y) = (unnormalized(grid_x, half[0]), unnormalized(grid_y, half[1]));
    }
}

/// The pixel at a whole place; none outside the input, nor for what is no number.
#[inline(always)]
fn pixel_at<const C: usize>(input: Whole<'_>, x: f32, y: f32) -> Option<&[u8; C]> {
    let inside =
        x >= 0.0 && y >= 0.0 && x < input.size.width as f32 && y < input.size.height as f32;
    let at = || y as usize * input.size.width as usize + x as usize;
    inside.then(|| &input.pixels.as_chunks::<C>().0[at()])
}

#[inline(always)]
fn bilinear<const C: usize>(warp: &Warp, input: Whole<'_>, x: f32, y: f32) -> [u8; C] {
    let (left, top) = (x.floor(), y.floor());
    let (across, down) = (x - left, y - top);
    if across.is_nan() || down.is_nan() {
        // Beyond the horizon of a tilt torch's weights are no numbers, and its pixels 0, not fill.
        return [0; C];
    }
    let (rest, above) = (1.0 - across, 1.0 - down);
    let taps = [
        (left, top, rest * above),
        (left + 1.0, top, across * above),
        (left, top + 1.0, rest * down),
        (left + 1.0, top + 1.0, across * down),
    ];
    let mut sums = [0.0; C];
    // How much of the pixel lies inside.
    let mut inside = 0.0;
    for (x, y, weight) in taps {
        if let Some(pixel) = pixel_at::<C>(input, x, y) {
            for (sum, &value) in sums.iter_mut().zip(pixel) {
                *sum = f32::from(value).mul_add(weight, *sum);
            }
            inside += weight;
        }
    }
    std::array::from_fn(|channel| {
        let sum = sums[channel];
        let value = match warp.fill {
            Some(fill) => {
                let fill = f32::from(fill[channel]);
                (sum - fill) * inside + fill
            }
            None => sum,
        };
        value.round_ties_even() as u8
    })
}

/// Sum of a pixel's weights in the blur: eight times 1 and once 5.
const WEIGHTS: u32 = 13;

#[inline(always)]
pub(super) fn sharpen<const C: usize>(
    blur: f32,
    input: Whole<'_>,
    [first, y]: [u32; 2],
    row: &mut [u8],
) {
    let line = input.size.width as usize * C;
    let at = |y: u32| &input.pixels[y as usize * line..(y as usize + 1) * line];
    let first = first as usize * C;
    row.copy_from_slice(&at(y)[first..first + row.len()]);
    if y == 0 || y + 1 == input.size.height || line < 2 * C {
        return;
    }
    let lines = [at(y - 1), at(y), at(y + 1)];
    for i in first.max(C)..(first + row.len()).min(line - C) {
        let value = u32::from(lines[1][i]);
        let of_line =
            |line: &[u8]| [i - C, i, i + C].map(|i| u32::from(line[i])).iter().sum::<u32>();
        let sum = lines.map(of_line).iter().sum::<u32>() + 4 * value;
        // Exact, as no sum lies halfway between two multiples of an odd number.
        let blurred = ((2 * sum + WEIGHTS) / (2 * WEIGHTS)) as f32;
        let value = value as f32;
        row[i - first] = (blurred - value).mul_add(blur, value).clamp(0.0, 255.0) as u8;
    }
}
