//! Two outputs and four taps of interleaved RGB of each at a time, with `vpermb` and `vpdpwssd`.

use super::{Columns, TAP_GROUP, scalar};
use std::arch::x86_64::{
    __m128i, __m512i, _mm_cvtsi32_si128, _mm_loadl_epi64, _mm_loadu_si128, _mm_setr_epi8,
    _mm_shuffle_epi8, _mm_storel_epi64, _mm_unpacklo_epi64, _mm256_add_epi32,
    _mm256_castsi128_si256, _mm256_cvtusepi32_epi8, _mm256_inserti128_si256, _mm256_max_epi32,
    _mm256_set1_epi32, _mm256_setzero_si256, _mm256_sra_epi32, _mm512_castsi128_si512,
    _mm512_castsi256_si512, _mm512_castsi512_si256, _mm512_dpwssd_epi32, _mm512_extracti64x4_epi64,
    _mm512_loadu_si512, _mm512_maskz_permutexvar_epi8, _mm512_permutexvar_epi8,
    _mm512_zextsi256_si512,
};

/// Bytes that one load of four pixels touches; the last four are not used.
const LOAD: usize = 16;
const GROUP_BYTES: usize = TAP_GROUP * 3;

/// Where the 64 bytes of a product come from. By 128-bit lanes: taps 0 and 1 of either output, then
/// taps 2 and 3 of either; in a lane a channel is a pair of 16-bit values, one of each tap.
#[allow(clippy::cast_possible_truncation, reason = "places among 32 bytes")]
const fn places(of_pixels: bool) -> [u8; 64] {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        let (output, channel, tap) = (at / 16 % 2, at % 16 / 4, at / 32 * 2 + at % 4 / 2);
        places[at] = if of_pixels {
            // The fourth channel and the high bytes are masked out.
            LOAD * output + 3 * tap + channel % 3
        } else {
            2 * TAP_GROUP * output + 2 * tap + at % 2
        } as u8;
        at += 1;
    }
    places
}

static PIXELS: [u8; 64] = places(true);
static WEIGHTS: [u8; 64] = places(false);
/// The low bytes of three channels' 16-bit values, in every lane.
const LOW_BYTES: u64 = 0x0555_0555_0555_0555;

/// Equals `scalar::weighted::<3>`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")]
pub(super) fn weighted_rgb(row: &[u8], columns: &Columns, out: &mut [u8]) {
    // SAFETY: the tables are 64 bytes long.
    let (pixel_places, weight_places) = unsafe {
        (_mm512_loadu_si512(PIXELS.as_ptr().cast()), _mm512_loadu_si512(WEIGHTS.as_ptr().cast()))
    };
    let without_fourth = _mm_setr_epi8(0, 1, 2, 4, 5, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    let half = _mm512_zextsi256_si512(_mm256_set1_epi32(1_i32 << columns.precision >> 1));
    let shift = _mm_cvtsi32_si128(columns.precision.cast_signed());
    let taps = columns.taps;
    // A pixel needs this many bytes from its first source for all its loads.
    let reach = (taps - TAP_GROUP) * 3 + LOAD;

    let pairs = columns.starts.as_chunks::<2>().0;
    for (pair, &[first, second]) in pairs.iter().enumerate() {
        let (from, to) = (first as usize * 3, second as usize * 3);
        let (Some(one), Some(two)) = (row.get(from..from + reach), row.get(to..to + reach)) else {
            scalar_pixels(row, columns, out, 2 * pair..2 * pair + 2);
            continue;
        };
        let weights = &columns.weights[2 * pair * taps..2 * (pair + 1) * taps];
        let (weights_one, weights_two) = weights.split_at(taps);
        let mut sums = half;
        let groups = weights_one.as_chunks::<TAP_GROUP>().0.iter();
        let groups = groups.zip(weights_two.as_chunks::<TAP_GROUP>().0);
        for (group, (weights_one, weights_two)) in groups.enumerate() {
            let at = group * GROUP_BYTES;
            // SAFETY: group is at most taps / 4 - 1, so the loads end at most at `reach`, which is
            // the length of `one` and `two`; four weights are eight bytes.
            let (pixels, weights) = unsafe {
                let load =
                    |from: &[u8]| -> __m128i { _mm_loadu_si128(from.as_ptr().add(at).cast()) };
                let four = |from: &[i16; 4]| _mm_loadl_epi64(from.as_ptr().cast());
                let low = _mm256_castsi128_si256(load(one));
                (
                    _mm512_castsi256_si512(_mm256_inserti128_si256::<1>(low, load(two))),
                    _mm_unpacklo_epi64(four(weights_one), four(weights_two)),
                )
            };
            let pixels = _mm512_maskz_permutexvar_epi8(LOW_BYTES, pixel_places, pixels);
            let weights = _mm512_permutexvar_epi8(weight_places, _mm512_castsi128_si512(weights));
            sums = _mm512_dpwssd_epi32(sums, pixels, weights);
        }
        let bytes = _mm_shuffle_epi8(finish(sums, shift), without_fourth);
        // Six bytes and the place of the next pixel; the last one has no room for it.
        if let Some(place) = out.get_mut(6 * pair..6 * pair + 8) {
            // SAFETY: `place` is 8 bytes long.
            unsafe { _mm_storel_epi64(place.as_mut_ptr().cast(), bytes) };
        } else {
            let mut eight = [0; 8];
            // SAFETY: `eight` is 8 bytes long.
            unsafe { _mm_storel_epi64(eight.as_mut_ptr().cast(), bytes) };
            out[6 * pair..6 * pair + 6].copy_from_slice(&eight[..6]);
        }
    }
    scalar_pixels(row, columns, out, 2 * pairs.len()..columns.starts.len());
}

/// Two pixels of four bytes, the fourth 0.
#[target_feature(enable = "avx512f,avx512vl")]
fn finish(sums: __m512i, shift: __m128i) -> __m128i {
    let sums = _mm256_add_epi32(_mm512_castsi512_si256(sums), _mm512_extracti64x4_epi64::<1>(sums));
    let values = _mm256_max_epi32(_mm256_sra_epi32(sums, shift), _mm256_setzero_si256());
    _mm256_cvtusepi32_epi8(values)
}

fn scalar_pixels(row: &[u8], columns: &Columns, out: &mut [u8], pixels: std::ops::Range<usize>) {
    for i in pixels {
        out[3 * i..3 * i + 3].copy_from_slice(&scalar::weighted_pixel::<3>(row, columns, i));
    }
}
