//! Between interleaved RGB and one vector per channel, sixteen pixels at a time.

use std::arch::x86_64::{
    __m128i, _mm_loadu_si128, _mm_or_si128, _mm_setr_epi8, _mm_shuffle_epi8, _mm_storeu_si128,
};

/// Pixels of one step.
pub(super) const PIXELS: usize = 16;

/// Sixteen interleaved pixels by channel.
#[target_feature(enable = "avx2,fma")]
pub(super) fn deinterleave(pixels: &[u8; 3 * PIXELS]) -> [__m128i; 3] {
    let parts = [0, 16, 32].map(|at| {
        // SAFETY: 16 bytes from 0, 16 and 32 lie inside the 48 bytes of `pixels`.
        unsafe { _mm_loadu_si128(pixels.as_ptr().add(at).cast()) }
    });
    let red = [
        _mm_setr_epi8(0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
        _mm_setr_epi8(-1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14, -1, -1, -1, -1, -1),
        _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 1, 4, 7, 10, 13),
    ];
    let green = [
        _mm_setr_epi8(1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
        _mm_setr_epi8(-1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15, -1, -1, -1, -1, -1),
        _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, 5, 8, 11, 14),
    ];
    let blue = [
        _mm_setr_epi8(2, 5, 8, 11, 14, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1),
        _mm_setr_epi8(-1, -1, -1, -1, -1, 1, 4, 7, 10, 13, -1, -1, -1, -1, -1, -1),
        _mm_setr_epi8(-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 3, 6, 9, 12, 15),
    ];
    [red, green, blue].map(|masks| {
        let gathered = _mm_or_si128(
            _mm_shuffle_epi8(parts[0], masks[0]),
            _mm_shuffle_epi8(parts[1], masks[1]),
        );
        _mm_or_si128(gathered, _mm_shuffle_epi8(parts[2], masks[2]))
    })
}

/// Sixteen pixels from their channels.
#[target_feature(enable = "avx2,fma")]
pub(super) fn interleave([red, green, blue]: [__m128i; 3], pixels: &mut [u8; 3 * PIXELS]) {
    let parts = [
        [
            _mm_setr_epi8(0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1, 5),
            _mm_setr_epi8(-1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1, -1),
            _mm_setr_epi8(-1, -1, 0, -1, -1, 1, -1, -1, 2, -1, -1, 3, -1, -1, 4, -1),
        ],
        [
            _mm_setr_epi8(-1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10, -1),
            _mm_setr_epi8(5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1, 10),
            _mm_setr_epi8(-1, 5, -1, -1, 6, -1, -1, 7, -1, -1, 8, -1, -1, 9, -1, -1),
        ],
        [
            _mm_setr_epi8(-1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1, -1),
            _mm_setr_epi8(-1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15, -1),
            _mm_setr_epi8(10, -1, -1, 11, -1, -1, 12, -1, -1, 13, -1, -1, 14, -1, -1, 15),
        ],
    ];
    for (masks, place) in parts.iter().zip(pixels.as_chunks_mut::<16>().0) {
        let gathered =
            _mm_or_si128(_mm_shuffle_epi8(red, masks[0]), _mm_shuffle_epi8(green, masks[1]));
        let gathered = _mm_or_si128(gathered, _mm_shuffle_epi8(blue, masks[2]));
        // SAFETY: `place` is 16 bytes long; the store needs no alignment.
        unsafe { _mm_storeu_si128(place.as_mut_ptr().cast(), gathered) }
    }
}
