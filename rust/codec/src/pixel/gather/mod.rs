//! Rows of an image of which each pixel is made from some pixels of another.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;

use crate::Level;
use crate::simd::Kind;
use forebay_core::{Gather, Size, Warp};
use std::ops::Range;

/// The whole input, interleaved.
#[derive(Debug, Clone, Copy)]
pub struct Whole<'a> {
    pixels: &'a [u8],
    size: Size,
}

impl<'a> Whole<'a> {
    /// # Panics
    /// If there are not as many pixels of `C` channels as `size` says, or more than 2^31 across or
    /// down.
    pub fn new<const C: usize>(pixels: &'a [u8], size: Size) -> Self {
        assert_eq!(pixels.len() as u64, size.pixels() * C as u64);
        assert!(size.width.max(size.height) <= 1 << 31);
        Self { pixels, size }
    }
}

/// Where a row's pixels lie in the input, by column.
#[derive(Debug, Default)]
pub struct Places {
    first: u32,
    across: Vec<f32>,
    down: Vec<f32>,
}

/// Makes some columns of row `y`, which is as wide as the gather's result, with `C` channels.
///
/// # Panics
/// If `row` has another length than that, or the result no such row or columns.
pub fn row<const C: usize>(
    level: Level,
    gather: &Gather,
    input: Whole<'_>,
    y: u32,
    columns: Range<u32>,
    places: &mut Places,
    row: &mut [u8],
) {
    let size = gather.size(input.size);
    assert!(row.len() == size.width as usize * C && y < size.height);
    let (first, end) = (columns.start as usize, columns.end as usize);
    let row = &mut row[first * C..end * C];
    match *gather {
        Gather::Warp(warp) => {
            places.first = columns.start;
            places.across.resize(end - first, 0.0);
            places.down.resize(end - first, 0.0);
            self::warp::<C>(level, &warp, input, y, places, row);
        }
        Gather::Sharpen { blur } => sharpen::<C>(level, blur, input, [columns.start, y], row),
    }
}

fn warp<const C: usize>(
    level: Level,
    warp: &Warp,
    input: Whole<'_>,
    y: u32,
    places: &mut Places,
    row: &mut [u8],
) {
    match level.kind() {
        Kind::Scalar => scalar::warp::<C>(warp, input, y, places, row),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the CPU has these instructions.
        Kind::Avx2 | Kind::Avx512 => unsafe { avx2::warp::<C>(warp, input, y, places, row) },
    }
}

fn sharpen<const C: usize>(
    level: Level,
    blur: f32,
    input: Whole<'_>,
    at: [u32; 2],
    row: &mut [u8],
) {
    match level.kind() {
        Kind::Scalar => scalar::sharpen::<C>(blur, input, at, row),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level says that the CPU has these instructions.
        Kind::Avx2 | Kind::Avx512 => unsafe { avx2::sharpen::<C>(blur, input, at, row) },
    }
}
