//! Exact sums over pixels: what a data set's mean and standard deviation are made of.

/// Per channel: sum of values, and sum of their squares.
pub type Sums = [[u64; 2]; 3];

/// Pixels summed before 32-bit counters could overflow: 2^16 squares of 255 stay below 2^32.
const BLOCK: usize = 1 << 16;

/// Sums over interleaved RGB.
///
/// ```
/// assert_eq!(forebay_codec::pixel::sums::sums(&[1, 2, 3, 4, 5, 6]), [[5, 17], [7, 29], [9, 45]]);
/// ```
pub fn sums(pixels: &[u8]) -> Sums {
    let mut total = [[0; 2]; 3];
    for block in pixels.chunks(3 * BLOCK) {
        let mut part = [[0_u32; 2]; 3];
        for pixel in block.as_chunks::<3>().0 {
            for (sums, &value) in part.iter_mut().zip(pixel) {
                sums[0] += u32::from(value);
                sums[1] += u32::from(value) * u32::from(value);
            }
        }
        for (total, part) in total.iter_mut().zip(part) {
            total[0] += u64::from(part[0]);
            total[1] += u64::from(part[1]);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overflows() {
        let pixels = vec![255; 3 * (BLOCK + 5)];
        let count = BLOCK as u64 + 5;
        assert_eq!(sums(&pixels), [[255 * count, 255 * 255 * count]; 3]);
    }
}
