//! The oracle: one weighted sum at a time.

use super::Columns;

pub(super) fn weighted<const C: usize>(row: &[u8], columns: &Columns, out: &mut [u8]) {
    for (i, pixel) in out.chunks_exact_mut(C).enumerate() {
        pixel.copy_from_slice(&weighted_pixel::<C>(row, columns, i));
    }
}

/// Output `i`. Sources behind the row's end have weight 0 (padding) and are left out.
pub(super) fn weighted_pixel<const C: usize>(row: &[u8], columns: &Columns, i: usize) -> [u8; C] {
    let weights = &columns.weights[i * columns.taps..(i + 1) * columns.taps];
    let sources = row[columns.starts[i] as usize * C..].chunks_exact(C);
    let mut sums = [1_i32 << columns.precision >> 1; C];
    for (&weight, source) in weights.iter().zip(sources) {
        for channel in 0..C {
            sums[channel] += i32::from(weight) * i32::from(source[channel]);
        }
    }
    sums.map(|sum| crate::pixel::vertical::clamp_u8(sum >> columns.precision))
}
