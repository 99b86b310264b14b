//! Sixteen bytes of two rows at a time, with `vpmaddwd`.

use super::{Ring, scalar};
use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm_loadu_si128, _mm_storeu_si128, _mm256_add_epi32,
    _mm256_castsi256_si128, _mm256_cvtepu8_epi16, _mm256_madd_epi16, _mm256_packs_epi32,
    _mm256_packus_epi16, _mm256_permute4x64_epi64, _mm256_set1_epi32, _mm256_sra_epi32,
    _mm256_unpackhi_epi16, _mm256_unpacklo_epi16,
};

const STEP: usize = 16;

/// Equals `scalar::weighted`.
#[target_feature(enable = "avx2")]
pub(super) fn weighted(ring: &Ring, first: usize, weights: &[i16], precision: u32, out: &mut [u8]) {
    let half = _mm256_set1_epi32(1_i32 << precision >> 1);
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
            let weight = _mm256_set1_epi32(weight);
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

#[target_feature(enable = "avx2")]
fn load(row: &[u8], at: usize) -> __m256i {
    let bytes = &row[at..at + STEP];
    // SAFETY: `bytes` is 16 bytes long.
    _mm256_cvtepu8_epi16(unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) })
}

/// Adds `upper * weight.low + lower * weight.high` to the eight sums of each of two vectors.
#[target_feature(enable = "avx2")]
fn accumulate(sums: &mut [__m256i; 4], at: usize, upper: __m256i, lower: __m256i, weight: __m256i) {
    let low = _mm256_madd_epi16(_mm256_unpacklo_epi16(upper, lower), weight);
    let high = _mm256_madd_epi16(_mm256_unpackhi_epi16(upper, lower), weight);
    sums[at] = _mm256_add_epi32(sums[at], low);
    sums[at + 1] = _mm256_add_epi32(sums[at + 1], high);
}

#[target_feature(enable = "avx2")]
fn store(
    low: __m256i,
    high: __m256i,
    shift: std::arch::x86_64::__m128i,
    out: &mut [u8],
    at: usize,
) {
    // Unpacking and packing are both by lanes, so the order is the row's again.
    let words = _mm256_packs_epi32(_mm256_sra_epi32(low, shift), _mm256_sra_epi32(high, shift));
    let bytes = _mm256_permute4x64_epi64::<0b10_00>(_mm256_packus_epi16(words, words));
    let place = &mut out[at..at + STEP];
    // SAFETY: `place` is 16 bytes long.
    unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), _mm256_castsi256_si128(bytes)) }
}
