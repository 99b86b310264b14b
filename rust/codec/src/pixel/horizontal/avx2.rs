//! Four taps at a time, with `vpmaddwd`: of an interleaved RGB pixel, or of four grey ones.

use super::{Columns, TAP_GROUP, scalar};
use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_cvtsi32_si128, _mm_cvtsi128_si32, _mm_hadd_epi32, _mm_loadu_si128,
    _mm_packs_epi32, _mm_packus_epi16, _mm_set1_epi32, _mm_setr_epi32, _mm_sra_epi32,
    _mm256_add_epi32, _mm256_broadcastsi128_si256, _mm256_castsi256_si128, _mm256_cvtepu8_epi16,
    _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_madd_epi16, _mm256_set1_epi64x,
    _mm256_setr_epi8, _mm256_setr_epi64x, _mm256_setzero_si256, _mm256_shuffle_epi8,
};

/// Bytes that one load of four pixels touches; the last four are not used.
const LOAD: usize = 16;
const GROUP_BYTES: usize = TAP_GROUP * 3;

/// Equals `scalar::weighted::<3>`.
#[target_feature(enable = "avx2")]
pub(super) fn weighted_rgb(row: &[u8], columns: &Columns, out: &mut [u8]) {
    // Taps 0 and 1 as 16-bit pairs per channel in the low lane, taps 2 and 3 in the high one.
    let pixels = _mm256_setr_epi8(
        0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1, //
        6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1,
    );
    let weight_pairs = _mm256_setr_epi8(
        0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, //
        4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7, 4, 5, 6, 7,
    );
    let half = _mm_set1_epi32(1_i32 << columns.precision >> 1);
    let half = _mm256_inserti128_si256::<0>(_mm256_setzero_si256(), half);
    let shift = _mm_cvtsi32_si128(columns.precision.cast_signed());
    let taps = columns.taps;
    // A pixel needs this many bytes from its first source for all its loads.
    let reach = (taps - TAP_GROUP) * 3 + LOAD;

    for (i, (&start, weights)) in
        columns.starts.iter().zip(columns.weights.chunks_exact(taps)).enumerate()
    {
        let from = start as usize * 3;
        let Some(sources) = row.get(from..from + reach) else {
            out[3 * i..3 * i + 3].copy_from_slice(&scalar::weighted_pixel::<3>(row, columns, i));
            continue;
        };
        let mut sums = half;
        let groups = weights.as_chunks::<TAP_GROUP>().0.iter();
        for (group, weights) in groups.enumerate() {
            // SAFETY: group is at most taps / 4 - 1, so the load ends at most at `reach`, which is
            // `sources`' length.
            let four: __m128i =
                unsafe { _mm_loadu_si128(sources.as_ptr().add(group * GROUP_BYTES).cast()) };
            let four = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(four), pixels);
            let [w0, w1, w2, w3] = weights.map(i16::to_le_bytes);
            let packed =
                i64::from_le_bytes([w0[0], w0[1], w1[0], w1[1], w2[0], w2[1], w3[0], w3[1]]);
            let weights = _mm256_shuffle_epi8(_mm256_set1_epi64x(packed), weight_pairs);
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(four, weights));
        }
        let sums = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let words = _mm_sra_epi32(sums, shift);
        let words = _mm_packs_epi32(words, words);
        let bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words)).to_le_bytes();
        // The fourth byte is 0 and the next pixel's place; the last pixel has no room for it.
        match out.get_mut(3 * i..3 * i + 4) {
            Some(place) => place.copy_from_slice(&bytes),
            None => out[3 * i..3 * i + 3].copy_from_slice(&bytes[..3]),
        }
    }
}

/// Outputs of one step of grey.
const STEP: usize = 4;

/// Equals `scalar::weighted::<1>`.
#[target_feature(enable = "avx2")]
pub(super) fn weighted_gray(row: &[u8], columns: &Columns, out: &mut [u8]) {
    let half = _mm_set1_epi32(1_i32 << columns.precision >> 1);
    let shift = _mm_cvtsi32_si128(columns.precision.cast_signed());
    let taps = columns.taps;
    let steps = columns.starts.as_chunks::<STEP>().0.iter();
    let weights = columns.weights.chunks_exact(STEP * taps);
    let mut done = 0;
    for ((starts, weights), place) in steps.zip(weights).zip(out.as_chunks_mut::<STEP>().0) {
        let first = done;
        done += STEP;
        let [a, b, c, d] = *starts;
        if a.max(b).max(c).max(d) as usize + taps > row.len() {
            for (i, place) in (first..).zip(place) {
                [*place] = scalar::weighted_pixel::<1>(row, columns, i);
            }
            continue;
        }
        // Two sums for each output.
        let mut sums = _mm256_setzero_si256();
        for tap in (0..taps).step_by(TAP_GROUP) {
            // SAFETY: `taps` is a multiple of four, each start has so many bytes from it on, as
            // was checked, and each output so many weights.
            let (pixels, weights) = unsafe {
                let pixels = _mm_setr_epi32(
                    four_pixels(row, a as usize + tap),
                    four_pixels(row, b as usize + tap),
                    four_pixels(row, c as usize + tap),
                    four_pixels(row, d as usize + tap),
                );
                let weights = _mm256_setr_epi64x(
                    four_weights(weights, tap),
                    four_weights(weights, taps + tap),
                    four_weights(weights, 2 * taps + tap),
                    four_weights(weights, 3 * taps + tap),
                );
                (pixels, weights)
            };
            let products = _mm256_madd_epi16(_mm256_cvtepu8_epi16(pixels), weights);
            sums = _mm256_add_epi32(sums, products);
        }
        let (low, high) = (_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let words = _mm_sra_epi32(_mm_add_epi32(_mm_hadd_epi32(low, high), half), shift);
        let words = _mm_packs_epi32(words, words);
        *place = _mm_cvtsi128_si32(_mm_packus_epi16(words, words)).to_le_bytes();
    }
    for (i, place) in out.iter_mut().enumerate().skip(done) {
        [*place] = scalar::weighted_pixel::<1>(row, columns, i);
    }
}

/// Four bytes from `at` on.
///
/// # Safety
/// The row has them.
unsafe fn four_pixels(row: &[u8], at: usize) -> i32 {
    debug_assert!(at + 4 <= row.len(), "checked by the caller");
    // SAFETY: the caller's promise; any address will do.
    unsafe { row.as_ptr().add(at).cast::<i32>().read_unaligned() }
}

/// Four weights from `at` on.
///
/// # Safety
/// There are so many.
unsafe fn four_weights(weights: &[i16], at: usize) -> i64 {
    debug_assert!(at + 4 <= weights.len(), "checked by the caller");
    // SAFETY: the caller's promise; any address will do.
    unsafe { weights.as_ptr().add(at).cast::<i64>().read_unaligned() }
}
