//! The oracle's code compiled with AVX2 and FMA, where a fused multiply-add is one instruction
//! instead of a call; the results are the same by definition of the operation.

use super::scalar;

#[target_feature(enable = "avx2,fma")]
pub(super) fn saturate(pixels: &mut [[u8; 3]], ratio: f32) {
    scalar::saturate(pixels, ratio);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn turn_hue(pixels: &mut [[u8; 3]], turns: f32) {
    scalar::turn_hue(pixels, turns);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn gray_sum(pixels: &[[u8; 3]]) -> u64 {
    scalar::gray_sum(pixels)
}
