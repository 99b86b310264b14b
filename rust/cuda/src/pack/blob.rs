//! Bytes that are uploaded in one copy, and the layout of the memory that kernels share.

use zerocopy::{Immutable, IntoBytes};

/// Alignment of everything in the blob, and of sums: enough for every field of every descriptor.
pub(super) const ALIGN: usize = 8;
/// Alignment of areas in the scratch: a line of the GPU's caches, so that warps read whole ones.
const AREA_ALIGN: u64 = 128;

/// Descriptors and tables, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Blob(Vec<u8>);

impl Blob {
    /// Appends values; returns the offset of the first.
    pub(super) fn append<T: IntoBytes + Immutable>(&mut self, values: &[T]) -> u64 {
        self.0.resize(self.0.len().next_multiple_of(ALIGN), 0);
        let offset = self.0.len() as u64;
        self.0.extend_from_slice(values.as_bytes());
        offset
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Offsets into the scratch: sums first, then histograms, then areas.
#[derive(Debug)]
pub(super) struct Scratch {
    next_sum: u64,
    next_histogram: u64,
    end: u64,
}

/// Bytes of a histogram: 256 counts for each of three channels.
const HISTOGRAM: usize = 3 * 256 * size_of::<u32>();

impl Scratch {
    /// With room for `sums` and `histograms`.
    pub(super) fn new(sums: usize, histograms: usize) -> Self {
        let next_histogram = (sums * size_of::<u64>()) as u64;
        let end = next_histogram + (histograms * HISTOGRAM) as u64;
        Self { next_sum: 0, next_histogram, end }
    }

    /// The next histogram.
    pub(super) fn histogram(&mut self) -> u64 {
        let offset = self.next_histogram;
        self.next_histogram += HISTOGRAM as u64;
        debug_assert!(self.next_histogram <= self.end, "as many as were announced");
        offset
    }

    /// The next sum.
    pub(super) fn sum(&mut self) -> u64 {
        let offset = self.next_sum;
        self.next_sum += size_of::<u64>() as u64;
        debug_assert!(self.next_sum <= self.end, "as many as were announced");
        offset
    }

    /// An area of words.
    pub(super) fn area(&mut self, words: u64) -> u64 {
        let offset = self.end.next_multiple_of(AREA_ALIGN);
        self.end = offset + words * size_of::<u32>() as u64;
        offset
    }

    /// Bytes in all.
    pub(super) fn bytes(&self) -> u64 {
        self.end
    }
}
