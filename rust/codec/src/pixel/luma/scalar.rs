//! The oracle: one pixel at a time.

/// The grey value of a pixel.
pub(super) fn luma([red, green, blue]: [u8; 3]) -> u8 {
    let sum = 19_595 * u32::from(red) + 38_470 * u32::from(green) + 7_471 * u32::from(blue);
    ((sum + 0x8000) >> 16).to_le_bytes()[0]
}

/// Replaces the row's bytes from `first` to `pixels` by grey values of the pixels of those numbers.
pub(super) fn shrink(row: &mut [u8], first: usize, pixels: usize) {
    for pixel in first..pixels {
        let rgb = &row[3 * pixel..3 * pixel + 3];
        row[pixel] = luma([rgb[0], rgb[1], rgb[2]]);
    }
}
