//! The oracle's code, compiled for wider registers and with fused multiply-adds as instructions.

use super::{Places, Whole, scalar};
use forebay_core::Warp;

#[target_feature(enable = "avx2,fma")]
pub(super) fn warp<const C: usize>(
    warp: &Warp,
    input: Whole<'_>,
    y: u32,
    places: &mut Places,
    row: &mut [u8],
) {
    scalar::warp::<C>(warp, input, y, places, row);
}

#[target_feature(enable = "avx2,fma")]
pub(super) fn sharpen<const C: usize>(blur: f32, input: Whole<'_>, at: [u32; 2], row: &mut [u8]) {
    scalar::sharpen::<C>(blur, input, at, row);
}
