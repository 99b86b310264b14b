//! Four taps of interleaved RGB at a time, with `vpmaddwd`.

use super::{Columns, TAP_GROUP, scalar};
use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_cvtsi32_si128, _mm_cvtsi128_si32, _mm_loadu_si128, _mm_packs_epi32,
    _mm_packus_epi16, _mm_set1_epi32, _mm_sra_epi32, _mm256_add_epi32, _mm256_broadcastsi128_si256,
    _mm256_castsi256_si128, _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_madd_epi16,
    _mm256_set1_epi64x, _mm256_setr_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8,
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
