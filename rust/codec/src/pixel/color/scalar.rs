//! The oracle: one pixel at a time, inlined into each level's functions.

#![allow(
    clippy::many_single_char_names,
    clippy::float_cmp,
    reason = "the names and the comparisons are the reference implementation's"
)]
#![allow(
    clippy::inline_always,
    reason = "each level's functions must compile this code with their own instructions"
)]

use forebay_core::Blend;

/// Clamps to 0..255 and drops the fraction, as `clamp_(0, 255).to(uint8)`.
#[inline(always)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is clamped to what the type holds; dropping the fraction is the point"
)]
pub(super) fn truncate(value: f32) -> u8 {
    value.clamp(0.0, 255.0) as u8
}

/// `floor(0.2989 r + 0.587 g + 0.114 b)`.
#[inline(always)]
fn gray(pixel: [u8; 3]) -> f32 {
    let [r, g, b] = pixel.map(f32::from);
    b.mul_add(0.114, g.mul_add(0.587, r * 0.2989)).floor()
}

/// All channels become the pixel's grey value.
pub(super) fn to_gray(pixels: &mut [[u8; 3]]) {
    for pixel in pixels {
        *pixel = [truncate(gray(*pixel)); 3];
    }
}

/// The mask of the `bits` upper bits.
pub(super) fn upper(bits: u8) -> u8 {
    255_u8.checked_shl(8 - u32::from(bits.min(8))).unwrap_or(0)
}

#[inline(always)]
pub(super) fn saturate(pixels: &mut [[u8; 3]], Blend { image, other }: Blend) {
    for pixel in pixels {
        let gray = gray(*pixel);
        *pixel = pixel.map(|value| truncate(gray.mul_add(other, f32::from(value) * image)));
    }
}

#[inline(always)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "grey values are whole numbers from 0 to 255"
)]
pub(super) fn gray_sum(pixels: &[[u8; 3]]) -> u64 {
    // Blocks keep the inner sum in 32 bits, which vectorises.
    pixels
        .chunks(1 << 16)
        .map(|block| u64::from(block.iter().map(|&pixel| gray(pixel) as u32).sum::<u32>()))
        .sum()
}

#[inline(always)]
pub(super) fn turn_hue(pixels: &mut [[u8; 3]], turns: f32) {
    for pixel in pixels {
        let rgb = pixel.map(|value| f32::from(value) * (1.0 / 255.0));
        let [h, s, v] = hsv_from_rgb(rgb);
        let h = fraction(h + turns);
        // `to_dtype`'s factor: max_value + 1 - 1e-3, rounded to float32.
        *pixel = rgb_from_hsv([h, s, v]).map(|value| truncate(value * 255.999));
    }
}

/// `remainder(value, 1)`, and `fmod` where the value is not negative: the subtraction is exact
/// for the hues that occur, -0.5 to 2.
#[inline(always)]
fn fraction(value: f32) -> f32 {
    value - value.floor()
}

#[inline(always)]
fn hsv_from_rgb([r, g, b]: [f32; 3]) -> [f32; 3] {
    let most = r.max(g).max(b);
    let least = r.min(g).min(b);
    let range = most - least;
    let gray = most == least;
    let s = range / if gray { 1.0 } else { most };
    let divisor = if gray { 1.0 } else { range };
    let [rc, gc, bc] = [r, g, b].map(|channel| (most - channel) / divisor);
    let h = if most == r {
        bc - gc
    } else if most == g {
        rc + 2.0 - bc
    } else {
        gc + 4.0 - rc
    };
    [fraction(h * (1.0 / 6.0) + 1.0), s, most]
}

#[inline(always)]
fn rgb_from_hsv([h, s, v]: [f32; 3]) -> [f32; 3] {
    let h6 = h * 6.0;
    let sector = h6.floor();
    let f = h6 - sector;
    let sxf = s * f;
    let q = ((1.0 - sxf) * v).clamp(0.0, 1.0);
    let t = ((sxf + (1.0 - s)) * v).clamp(0.0, 1.0);
    let p = ((1.0 - s) * v).clamp(0.0, 1.0);
    #[allow(clippy::cast_possible_truncation, reason = "a whole number from 0 to 6")]
    match (sector as i32).rem_euclid(6) {
        0 => [v, t, p],
        1 => [q, v, p],
        2 => [p, v, t],
        3 => [p, q, v],
        4 => [t, p, v],
        _ => [v, p, q],
    }
}
