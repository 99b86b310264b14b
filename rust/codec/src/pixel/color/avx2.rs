//! Sixteen pixels at a time, eight floats a vector; each operation is the oracle's, in its order, so
//! the results are equal bit for bit.

#![allow(clippy::many_single_char_names, reason = "the names are the reference implementation's")]

use super::scalar;
use crate::pixel::lanes::{PIXELS, deinterleave, interleave};
use forebay_core::Blend;
use std::arch::x86_64::{
    __m128i, __m256, _CMP_EQ_OQ, _mm_packus_epi16, _mm_packus_epi32, _mm_srli_si128,
    _mm256_add_epi32, _mm256_add_ps, _mm256_blendv_ps, _mm256_castsi256_si128, _mm256_cmp_ps,
    _mm256_cvtepi32_ps, _mm256_cvtepu8_epi32, _mm256_cvttps_epi32, _mm256_div_ps,
    _mm256_extract_epi32, _mm256_extracti128_si256, _mm256_floor_ps, _mm256_fmadd_ps,
    _mm256_max_ps, _mm256_min_ps, _mm256_mul_ps, _mm256_or_ps, _mm256_set1_ps, _mm256_setzero_ps,
    _mm256_setzero_si256, _mm256_sub_ps,
};

type Pixels = [__m256; 3];

/// Steps of sixteen pixels before a sum of grey values could overflow 32 bits.
const STEPS: usize = 1 << 20;

#[target_feature(enable = "avx2,fma")]
pub(super) fn saturate(pixels: &mut [[u8; 3]], blend: Blend) {
    let factor = _mm256_set1_ps(blend.image);
    let rest = _mm256_set1_ps(blend.other);
    let (steps, tail) = pixels.as_chunks_mut::<PIXELS>();
    for step in steps {
        each_half(step, |rgb| {
            let gray = gray(rgb);
            rgb.map(|value| _mm256_fmadd_ps(gray, rest, _mm256_mul_ps(value, factor)))
        });
    }
    scalar::saturate(tail, blend);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn turn_hue(pixels: &mut [[u8; 3]], turns: f32) {
    let vector = _mm256_set1_ps(turns);
    let (scale, back) = (_mm256_set1_ps(1.0 / 255.0), _mm256_set1_ps(255.999));
    let (steps, tail) = pixels.as_chunks_mut::<PIXELS>();
    for step in steps {
        each_half(step, |rgb| {
            let [h, s, v] = hsv_from_rgb(rgb.map(|value| _mm256_mul_ps(value, scale)));
            let h = fraction(_mm256_add_ps(h, vector));
            rgb_from_hsv([h, s, v]).map(|value| _mm256_mul_ps(value, back))
        });
    }
    scalar::turn_hue(tail, turns);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn gray_sum(pixels: &[[u8; 3]]) -> u64 {
    let (steps, tail) = pixels.as_chunks::<PIXELS>();
    let mut total = scalar::gray_sum(tail);
    for steps in steps.chunks(STEPS) {
        let mut sums = _mm256_setzero_si256();
        for step in steps {
            for half in halves(deinterleave(flat(step))) {
                sums = _mm256_add_epi32(sums, _mm256_cvttps_epi32(gray(half)));
            }
        }
        let lanes = [
            _mm256_extract_epi32::<0>(sums),
            _mm256_extract_epi32::<1>(sums),
            _mm256_extract_epi32::<2>(sums),
            _mm256_extract_epi32::<3>(sums),
            _mm256_extract_epi32::<4>(sums),
            _mm256_extract_epi32::<5>(sums),
            _mm256_extract_epi32::<6>(sums),
            _mm256_extract_epi32::<7>(sums),
        ];
        total += lanes.iter().map(|lane| u64::from(lane.cast_unsigned())).sum::<u64>();
    }
    total
}

fn flat(step: &[[u8; 3]; PIXELS]) -> &[u8; 3 * PIXELS] {
    step.as_flattened().try_into().expect("sixteen pixels are 48 bytes")
}

/// Changes sixteen pixels by their floats, eight at a time; clamps to 0..255 and drops fractions.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn each_half(step: &mut [[u8; 3]; PIXELS], change: impl Fn(Pixels) -> Pixels) {
    let [low, high] = halves(deinterleave(flat(step)));
    let (low, high) = (change(low), change(high));
    let channels = [0, 1, 2].map(|channel| bytes(low[channel], high[channel]));
    let place = step.as_flattened_mut().try_into().expect("sixteen pixels are 48 bytes");
    interleave(channels, place);
}

/// The channels of the first and of the last eight pixels, as floats.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn halves(channels: [__m128i; 3]) -> [Pixels; 2] {
    let floats = |eight| _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eight));
    [channels.map(floats), channels.map(|channel| floats(_mm_srli_si128::<8>(channel)))]
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn bytes(low: __m256, high: __m256) -> __m128i {
    let words = |floats| {
        let clamped = clamp(floats, 255.0);
        let whole = _mm256_cvttps_epi32(clamped);
        _mm_packus_epi32(_mm256_castsi256_si128(whole), _mm256_extracti128_si256::<1>(whole))
    };
    _mm_packus_epi16(words(low), words(high))
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn clamp(value: __m256, most: f32) -> __m256 {
    _mm256_min_ps(_mm256_max_ps(value, _mm256_setzero_ps()), _mm256_set1_ps(most))
}

/// `floor(0.2989 r + 0.587 g + 0.114 b)`.
#[target_feature(enable = "avx2,fma")]
#[inline]
fn gray([r, g, b]: Pixels) -> __m256 {
    let red = _mm256_mul_ps(r, _mm256_set1_ps(0.2989));
    let red_green = _mm256_fmadd_ps(g, _mm256_set1_ps(0.587), red);
    _mm256_floor_ps(_mm256_fmadd_ps(b, _mm256_set1_ps(0.114), red_green))
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn fraction(value: __m256) -> __m256 {
    _mm256_sub_ps(value, _mm256_floor_ps(value))
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn hsv_from_rgb([r, g, b]: Pixels) -> Pixels {
    let one = _mm256_set1_ps(1.0);
    let most = _mm256_max_ps(_mm256_max_ps(r, g), b);
    let least = _mm256_min_ps(_mm256_min_ps(r, g), b);
    let range = _mm256_sub_ps(most, least);
    let gray = _mm256_cmp_ps::<_CMP_EQ_OQ>(most, least);
    let s = _mm256_div_ps(range, _mm256_blendv_ps(most, one, gray));
    let divisor = _mm256_blendv_ps(range, one, gray);
    let [rc, gc, bc] =
        [r, g, b].map(|channel| _mm256_div_ps(_mm256_sub_ps(most, channel), divisor));
    let is_red = _mm256_cmp_ps::<_CMP_EQ_OQ>(most, r);
    let is_green = _mm256_cmp_ps::<_CMP_EQ_OQ>(most, g);
    let by_red = _mm256_sub_ps(bc, gc);
    let by_green = _mm256_sub_ps(_mm256_add_ps(rc, _mm256_set1_ps(2.0)), bc);
    let by_blue = _mm256_sub_ps(_mm256_add_ps(gc, _mm256_set1_ps(4.0)), rc);
    let h = _mm256_blendv_ps(_mm256_blendv_ps(by_blue, by_green, is_green), by_red, is_red);
    let sixth = _mm256_mul_ps(h, _mm256_set1_ps(1.0 / 6.0));
    [fraction(_mm256_add_ps(sixth, one)), s, most]
}

#[target_feature(enable = "avx2,fma")]
#[inline]
fn rgb_from_hsv([h, s, v]: Pixels) -> Pixels {
    let one = _mm256_set1_ps(1.0);
    let h6 = _mm256_mul_ps(h, _mm256_set1_ps(6.0));
    let sector = _mm256_floor_ps(h6);
    let sxf = _mm256_mul_ps(s, _mm256_sub_ps(h6, sector));
    let rest = _mm256_sub_ps(one, s);
    let q = clamp(_mm256_mul_ps(_mm256_sub_ps(one, sxf), v), 1.0);
    let t = clamp(_mm256_mul_ps(_mm256_add_ps(sxf, rest), v), 1.0);
    let p = clamp(_mm256_mul_ps(rest, v), 1.0);
    let is = |number: f32| _mm256_cmp_ps::<_CMP_EQ_OQ>(sector, _mm256_set1_ps(number));
    let cases = [
        (_mm256_or_ps(is(0.0), is(6.0)), [v, t, p]),
        (is(1.0), [q, v, p]),
        (is(2.0), [p, v, t]),
        (is(3.0), [p, q, v]),
        (is(4.0), [t, p, v]),
    ];
    let mut rgb = [v, p, q];
    for (here, case) in cases {
        for (channel, value) in rgb.iter_mut().zip(case) {
            *channel = _mm256_blendv_ps(*channel, value, here);
        }
    }
    rgb
}
