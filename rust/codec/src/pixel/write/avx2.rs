//! Sixteen pixels into planes, or eight channels interleaved, at a time.
//!
//! Floats are computed by `Arithmetic`'s formula, which has been compared with the table for every
//! pixel value before it is used.

use super::{Arithmetic, Table, scalar};
use crate::pixel::lanes::{PIXELS, deinterleave};
use std::arch::x86_64::{
    __m128i, __m256, _mm_loadl_epi64, _mm_srli_si128, _mm_storeu_si128, _mm256_cvtepi32_ps,
    _mm256_cvtepu8_epi32, _mm256_fmadd_ps, _mm256_fnmadd_ps, _mm256_loadu_ps, _mm256_mul_ps,
    _mm256_set1_ps, _mm256_storeu_ps, _mm256_sub_ps,
};

#[target_feature(enable = "avx2,fma")]
pub(super) fn planes_raw(row: &[u8], planes: [&mut [u8]; 3]) {
    let (steps, tail) = row.as_chunks::<{ 3 * PIXELS }>();
    let [first, second, third] = planes;
    for (i, step) in steps.iter().enumerate() {
        let channels = deinterleave(step);
        for (plane, channel) in [&mut *first, &mut *second, &mut *third].into_iter().zip(channels) {
            let place = &mut plane[i * PIXELS..(i + 1) * PIXELS];
            // SAFETY: `place` is 16 bytes long.
            unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), channel) }
        }
    }
    let done = steps.len() * PIXELS;
    scalar::planes_raw(tail, [&mut first[done..], &mut second[done..], &mut third[done..]]);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn planes_single(
    row: &[u8],
    formula: &Arithmetic,
    table: &Table<4>,
    planes: [&mut [u8]; 3],
) {
    let constants = [0, 1, 2].map(|channel| Constants::new(formula, [channel; 8]));
    let (steps, tail) = row.as_chunks::<{ 3 * PIXELS }>();
    let [first, second, third] = planes;
    for (i, step) in steps.iter().enumerate() {
        let channels = deinterleave(step);
        let planes = [&mut *first, &mut *second, &mut *third];
        for ((plane, channel), constants) in planes.into_iter().zip(channels).zip(&constants) {
            let place = &mut plane[4 * i * PIXELS..4 * (i + 1) * PIXELS];
            let low = constants.values(channel);
            let high = constants.values(_mm_srli_si128::<8>(channel));
            // SAFETY: `place` is 64 bytes long; the stores need no alignment.
            unsafe {
                _mm256_storeu_ps(place.as_mut_ptr().cast(), low);
                _mm256_storeu_ps(place.as_mut_ptr().add(32).cast(), high);
            }
        }
    }
    let done = 4 * steps.len() * PIXELS;
    scalar::planes(tail, table, [&mut first[done..], &mut second[done..], &mut third[done..]]);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn interleaved_single(
    row: &[u8],
    formula: &Arithmetic,
    table: &Table<4>,
    out: &mut [u8],
) {
    // The channels of 24 elements in three vectors.
    let constants = [[0, 1, 2, 0, 1, 2, 0, 1], [2, 0, 1, 2, 0, 1, 2, 0], [1, 2, 0, 1, 2, 0, 1, 2]]
        .map(|channels| Constants::new(formula, channels));
    let (steps, tail) = row.as_chunks::<24>();
    let (places, rest) = out.split_at_mut(4 * 24 * steps.len());
    for (step, place) in steps.iter().zip(places.as_chunks_mut::<96>().0) {
        for (part, constants) in constants.iter().enumerate() {
            // SAFETY: `step` is 24 bytes long and part at most 2: 8 bytes are read inside it.
            let eight = unsafe { _mm_loadl_epi64(step.as_ptr().add(8 * part).cast()) };
            let values = constants.values(eight);
            // SAFETY: `place` is 96 bytes long: 32 bytes are written inside it.
            unsafe { _mm256_storeu_ps(place.as_mut_ptr().add(32 * part).cast(), values) }
        }
    }
    scalar::interleaved(tail, table, rest);
}

struct Constants {
    factor: __m256,
    mean: __m256,
    std: __m256,
    inverse_std: __m256,
}

impl Constants {
    #[target_feature(enable = "avx2,fma")]
    fn new(formula: &Arithmetic, channels: [usize; 8]) -> Self {
        let spread = |values: [f32; 3]| {
            let lanes = channels.map(|channel| values[channel]);
            // SAFETY: `lanes` is eight floats long.
            unsafe { _mm256_loadu_ps(lanes.as_ptr()) }
        };
        Self {
            factor: _mm256_set1_ps(formula.factor),
            mean: spread(formula.mean),
            std: spread(formula.std),
            inverse_std: spread(formula.inverse_std),
        }
    }

    /// `Arithmetic::value` of the low eight bytes.
    #[target_feature(enable = "avx2,fma")]
    fn values(&self, bytes: __m128i) -> __m256 {
        let pixel = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes));
        let centred = _mm256_sub_ps(_mm256_mul_ps(pixel, self.factor), self.mean);
        let quotient = _mm256_mul_ps(centred, self.inverse_std);
        let rest = _mm256_fnmadd_ps(quotient, self.std, centred);
        _mm256_fmadd_ps(rest, self.inverse_std, quotient)
    }
}
