//! Columns of one row: the resample's first direction.

mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;

use crate::Level;
use crate::simd::Kind;
use forebay_core::{Axis, Taps};

/// Taps are padded to a multiple of this, so that SIMD leaves need no tail.
const TAP_GROUP: usize = 4;

/// An axis prepared for many rows; keeps its memory between images.
#[derive(Debug, Default)]
pub struct Columns {
    kind: ColumnsKind,
    /// First input column of each output, or each output's source where it is copied.
    starts: Vec<u32>,
    /// `taps` weights per output.
    weights: Vec<i16>,
    taps: usize,
    precision: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ColumnsKind {
    /// Sources are consecutive.
    #[default]
    Forward,
    /// Sources are consecutive, from right to left.
    Backward,
    /// Sources are in some other order.
    Gather,
    Weighted,
}

impl Columns {
    /// Takes over an axis.
    pub fn prepare(&mut self, axis: &Axis) {
        self.starts.clear();
        match &axis.taps {
            Taps::Copy(sources) => {
                self.starts.extend_from_slice(sources);
                let steps = |delta: i64| {
                    sources.windows(2).all(|pair| i64::from(pair[1]) - i64::from(pair[0]) == delta)
                };
                self.kind = if steps(1) {
                    ColumnsKind::Forward
                } else if steps(-1) {
                    ColumnsKind::Backward
                } else {
                    ColumnsKind::Gather
                };
            }
            Taps::Weighted(table) => {
                self.kind = ColumnsKind::Weighted;
                self.precision = table.precision;
                self.starts.extend_from_slice(&table.starts);
                let most = table.counts.iter().max().map_or(0, |&count| count as usize);
                self.taps = most.next_multiple_of(TAP_GROUP);
                self.weights.clear();
                self.weights.resize(self.taps * self.starts.len(), 0);
                for (i, padded) in self.weights.chunks_exact_mut(self.taps.max(1)).enumerate() {
                    let (_, weights) = table.row(i);
                    padded[..weights.len()].copy_from_slice(weights);
                }
            }
        }
    }

    /// Output columns.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Whether there is no output column.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }
}

/// Computes a row of `C` channels; bytes of `row` behind the last source are never used.
///
/// # Panics
/// `out` is not `columns.len() * C` bytes long, or a source with a weight lies outside `row`.
pub fn resample<const C: usize>(level: Level, row: &[u8], columns: &Columns, out: &mut [u8]) {
    assert_eq!(out.len(), columns.len() * C, "one pixel per column");
    let Some(&first) = columns.starts.first() else { return };
    match columns.kind {
        ColumnsKind::Forward => {
            let from = first as usize * C;
            out.copy_from_slice(&row[from..from + out.len()]);
        }
        ColumnsKind::Backward => {
            let end = (first as usize + 1) * C;
            let sources = row[end - out.len()..end].chunks_exact(C).rev();
            out.chunks_exact_mut(C)
                .zip(sources)
                .for_each(|(out, pixel)| out.copy_from_slice(pixel));
        }
        ColumnsKind::Gather => {
            for (out, &source) in out.chunks_exact_mut(C).zip(&columns.starts) {
                let from = source as usize * C;
                out.copy_from_slice(&row[from..from + C]);
            }
        }
        ColumnsKind::Weighted => match level.kind() {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 if C == 3 => {
                // SAFETY: the level is `Avx2` only where the CPU has it.
                unsafe { avx2::weighted_rgb(row, columns, out) }
            }
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 if C == 3 => {
                // SAFETY: the level is `Avx512` only where the CPU has it.
                unsafe { avx512::weighted_rgb(row, columns, out) }
            }
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 | Kind::Avx512 if C == 1 => {
                // SAFETY: either level is only where the CPU has AVX2.
                unsafe { avx2::weighted_gray(row, columns, out) }
            }
            _ => scalar::weighted::<C>(row, columns, out),
        },
    }
}
