//! Rows into one row: the resample's second direction.

mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::Level;
use crate::simd::Kind;

/// The last rows of a stream, each at its number modulo the capacity.
#[derive(Debug, Default)]
pub struct Ring {
    bytes: Vec<u8>,
    row_bytes: usize,
    capacity: usize,
}

impl Ring {
    /// Makes room for `capacity` rows of `row_bytes`; contents are undefined.
    pub fn prepare(&mut self, capacity: usize, row_bytes: usize) {
        (self.capacity, self.row_bytes) = (capacity.max(1), row_bytes);
        let need = self.capacity * row_bytes;
        if self.bytes.len() < need {
            self.bytes.resize(need, 0);
        }
    }

    /// Row `number`, to be read.
    pub fn row(&self, number: usize) -> &[u8] {
        let at = number % self.capacity * self.row_bytes;
        &self.bytes[at..at + self.row_bytes]
    }

    /// Row `number`, to be written in place of the one `capacity` rows before.
    pub fn row_mut(&mut self, number: usize) -> &mut [u8] {
        let at = number % self.capacity * self.row_bytes;
        &mut self.bytes[at..at + self.row_bytes]
    }

    /// Bytes that are held on to.
    pub(crate) fn held(&self) -> usize {
        self.bytes.capacity()
    }
}

/// Sums rows `first..first + weights.len()` of the ring into `out`.
///
/// # Panics
/// `out` is not as long as the ring's rows, or there are more weights than rows in the ring.
pub fn weighted(
    level: Level,
    ring: &Ring,
    first: usize,
    weights: &[i16],
    precision: u32,
    out: &mut [u8],
) {
    assert_eq!(out.len(), ring.row_bytes, "rows of one length");
    assert!(weights.len() <= ring.capacity, "the ring holds every row that has a weight");
    match level.kind() {
        Kind::Scalar => scalar::weighted(ring, first, weights, precision, out, 0),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is `Avx2` only where the CPU has it.
        Kind::Avx2 => unsafe { avx2::weighted(ring, first, weights, precision, out) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is `Avx512` only where the CPU has it.
        Kind::Avx512 => unsafe { avx512::weighted(ring, first, weights, precision, out) },
    }
}

pub(super) fn clamp_u8(value: i32) -> u8 {
    u8::try_from(value.clamp(0, 255)).expect("clamped to 0..255")
}
