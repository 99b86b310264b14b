//! Grey values as Pillow's `convert("L")` makes them: ITU-R 601-2 luma in 16 fractional bits, half
//! up. Of three equal values it is that value.

mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::Level;
use crate::simd::Kind;

/// Replaces the first `pixels` of a row by their grey values, a byte each.
///
/// # Panics
/// The row has fewer pixels.
///
/// ```
/// use forebay_codec::Level;
/// use forebay_codec::pixel::luma::shrink;
///
/// let mut row = [255, 0, 0, 0, 255, 0, 0, 0, 255, 7, 7, 7];
/// shrink(Level::best(), &mut row, 4);
/// assert_eq!(row[..4], [76, 150, 29, 7]);
/// ```
pub fn shrink(level: Level, row: &mut [u8], pixels: usize) {
    assert!(row.len() / 3 >= pixels, "three bytes a pixel");
    match level.kind() {
        Kind::Scalar => scalar::shrink(row, 0, pixels),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: either level is only where the CPU has AVX2 and FMA.
        Kind::Avx2 | Kind::Avx512 => unsafe { avx2::shrink(row, pixels) },
    }
}
