//! Sixteen pixels at a time.

use super::scalar;
use crate::pixel::lanes::{PIXELS, deinterleave};
use std::arch::x86_64::{
    _mm_packus_epi16, _mm_storeu_si128, _mm256_add_epi32, _mm256_castsi256_si128,
    _mm256_cvtepu8_epi16, _mm256_extracti128_si256, _mm256_madd_epi16, _mm256_packus_epi32,
    _mm256_set1_epi32, _mm256_srli_epi32, _mm256_unpackhi_epi16, _mm256_unpacklo_epi16,
};

/// Weights of 16 bits, the first one lowest: half of green's beside red's, and half of it beside
/// blue's.
const RED_GREEN: i32 = 19_595 + (19_235 << 16);
const GREEN_BLUE: i32 = 19_235 + (7_471 << 16);

/// Equals `scalar::shrink` from the first pixel on.
#[target_feature(enable = "avx2,fma")]
pub(super) fn shrink(row: &mut [u8], pixels: usize) {
    let (first, second) = (_mm256_set1_epi32(RED_GREEN), _mm256_set1_epi32(GREEN_BLUE));
    let half = _mm256_set1_epi32(0x8000);
    let steps = pixels / PIXELS;
    for step in 0..steps {
        // What earlier steps wrote lies before it.
        let Some(rgb) = row[3 * PIXELS * step..].first_chunk() else { break };
        let [red, green, blue] = deinterleave(rgb).map(|channel| _mm256_cvtepu8_epi16(channel));
        let luma = |red_green, green_blue| {
            let sum = _mm256_add_epi32(
                _mm256_madd_epi16(red_green, first),
                _mm256_madd_epi16(green_blue, second),
            );
            _mm256_srli_epi32::<16>(_mm256_add_epi32(sum, half))
        };
        let low = luma(_mm256_unpacklo_epi16(red, green), _mm256_unpacklo_epi16(green, blue));
        let high = luma(_mm256_unpackhi_epi16(red, green), _mm256_unpackhi_epi16(green, blue));
        // Packed within the lanes in which they were unpacked.
        let words = _mm256_packus_epi32(low, high);
        let bytes =
            _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
        let place = &mut row[PIXELS * step..PIXELS * (step + 1)];
        // SAFETY: `place` is 16 bytes long.
        unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), bytes) }
    }
    scalar::shrink(row, PIXELS * steps, pixels);
}
