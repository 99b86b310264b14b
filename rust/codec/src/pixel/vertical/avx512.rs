//! Thirty-two bytes of two rows at a time, with `vpdpwssd`.

use super::{Ring, scalar};
use std::arch::x86_64::{
    __m128i, __m512i, _mm_cvtsi32_si128, _mm256_loadu_si256, _mm256_storeu_si256,
    _mm512_cvtepi16_epi8, _mm512_cvtepu8_epi16, _mm512_dpwssd_epi32, _mm512_max_epi16,
    _mm512_min_epi16, _mm512_packs_epi32, _mm512_set1_epi16, _mm512_set1_epi32,
    _mm512_setzero_si512, _mm512_sra_epi32, _mm512_unpackhi_epi16, _mm512_unpacklo_epi16,
};

const STEP: usize = 32;

/// Equals `scalar::weighted`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) fn weighted(ring: &Ring, first: usize, weights: &[i16], precision: u32, out: &mut [u8]) {
    let half = _mm512_set1_epi32(1_i32 << precision >> 1);
    let shift = _mm_cvtsi32_si128(precision.cast_signed());
    let steps = out.len() / STEP;
    let (pairs, odd) = weights.as_chunks::<2>();

    let mut step = 0;
    while step < steps {
        // Two steps share the look-up of rows and weights.
        let wide = step + 1 < steps;
        let at = step * STEP;
        let mut sums = [half; 4];
        let mut add = |upper: &[u8], lower: &[u8], weight: i32| {
            let weight = _mm512_set1_epi32(weight);
            accumulate(&mut sums, 0, load(upper, at), load(lower, at), weight);
            if wide {
                let at = at + STEP;
                accumulate(&mut sums, 2, load(upper, at), load(lower, at), weight);
            }
        };
        for (pair, &[upper, lower]) in pairs.iter().enumerate() {
            let row = first + 2 * pair;
            let weight = i32::from(lower) << 16 | i32::from(upper) & 0xffff;
            add(ring.row(row), ring.row(row + 1), weight);
        }
        if let &[weight] = odd {
            let row = ring.row(first + weights.len() - 1);
            add(row, row, i32::from(weight) & 0xffff);
        }
        store(sums[0], sums[1], shift, out, at);
        if wide {
            store(sums[2], sums[3], shift, out, at + STEP);
        }
        step += if wide { 2 } else { 1 };
    }
    scalar::weighted(ring, first, weights, precision, out, steps * STEP);
}

#[target_feature(enable = "avx512f,avx512bw")]
fn load(row: &[u8], at: usize) -> __m512i {
    let bytes = &row[at..at + STEP];
    // SAFETY: `bytes` is 32 bytes long.
    _mm512_cvtepu8_epi16(unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) })
}

/// Adds `upper * weight.low + lower * weight.high` to the sixteen sums of each of two vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
fn accumulate(sums: &mut [__m512i; 4], at: usize, upper: __m512i, lower: __m512i, weight: __m512i) {
    sums[at] = _mm512_dpwssd_epi32(sums[at], _mm512_unpacklo_epi16(upper, lower), weight);
    sums[at + 1] = _mm512_dpwssd_epi32(sums[at + 1], _mm512_unpackhi_epi16(upper, lower), weight);
}

#[target_feature(enable = "avx512f,avx512bw")]
fn store(low: __m512i, high: __m512i, shift: __m128i, out: &mut [u8], at: usize) {
    // Unpacking and packing are both by lanes, so the order is the row's again.
    let words = _mm512_packs_epi32(_mm512_sra_epi32(low, shift), _mm512_sra_epi32(high, shift));
    let words = _mm512_min_epi16(words, _mm512_set1_epi16(255));
    let bytes = _mm512_cvtepi16_epi8(_mm512_max_epi16(words, _mm512_setzero_si512()));
    let place = &mut out[at..at + STEP];
    // SAFETY: `place` is 32 bytes long.
    unsafe { _mm256_storeu_si256(place.as_mut_ptr().cast(), bytes) }
}
