//! The oracle: plain sums, a block of bytes at a time so that a row is looked up once per block.

use super::{Ring, clamp_u8};

const BLOCK: usize = 64;

/// From byte `from` of the row on.
pub(super) fn weighted(
    ring: &Ring,
    first: usize,
    weights: &[i16],
    precision: u32,
    out: &mut [u8],
    from: usize,
) {
    for (block, out) in out[from..].chunks_mut(BLOCK).enumerate() {
        let at = from + block * BLOCK;
        let mut sums = [1_i32 << precision >> 1; BLOCK];
        for (k, &weight) in weights.iter().enumerate() {
            let row = &ring.row(first + k)[at..at + out.len()];
            for (sum, &pixel) in sums.iter_mut().zip(row) {
                *sum += i32::from(weight) * i32::from(pixel);
            }
        }
        for (out, sum) in out.iter_mut().zip(sums) {
            *out = clamp_u8(sum >> precision);
        }
    }
}
