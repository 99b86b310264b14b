//! Normal noise for pixels: a number of twelve random bits names a quantile, so that every backend
//! makes the same element of the same bits.

use crate::rng::philox;
use std::sync::OnceLock;

/// How many values noise has. Their distribution is 1 / 8192 from the normal one at most.
pub const QUANTILES: usize = 1 << BITS;
const BITS: u32 = 12;

/// Which quantile each channel of a pixel has.
pub fn quantiles_of(key: [u32; 2], pixel: u32) -> [usize; 3] {
    let [red, green, blue, _] = philox([pixel, 0, 0, 0], key);
    [red, green, blue].map(|bits| (bits >> (u32::BITS - BITS)) as usize)
}

/// Values that split the normal distribution, of mean 0 and variance 1, into parts of one
/// probability: the middles of the parts.
///
/// ```
/// let quantiles = forebay_core::noise::normal_quantiles();
/// assert!(quantiles[2047] < 0.0 && -quantiles[2047] == quantiles[2048]);
/// ```
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "as floats")]
pub fn normal_quantiles() -> &'static [f32; QUANTILES] {
    static TABLE: OnceLock<[f32; QUANTILES]> = OnceLock::new();
    TABLE.get_or_init(|| {
        std::array::from_fn(|at| {
            // From the lower half alone, so that both halves are the same numbers.
            let mirrored = at.min(QUANTILES - 1 - at);
            let low = inverse((mirrored as f64 + 0.5) / QUANTILES as f64) as f32;
            if mirrored == at { low } else { -low }
        })
    })
}

/// The value below which a number of the normal distribution lies with probability `p`, from 1e-10
/// to a half: Wichura, "Algorithm AS 241: the percentage points of the normal distribution", 1988,
/// `PPND16`.
fn inverse(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        let above = polynomial(
            r,
            &[
                3.387_132_872_796_366_6,
                133.141_667_891_784_38,
                1_971.590_950_306_551_4,
                13_731.693_765_509_46,
                45_921.953_931_549_87,
                67_265.770_927_008_7,
                33_430.575_583_588_13,
                2_509.080_928_730_122_7,
            ],
        );
        let below = polynomial(
            r,
            &[
                1.0,
                42.313_330_701_600_91,
                687.187_007_492_057_9,
                5_394.196_021_424_751,
                21_213.794_301_586_597,
                39_307.895_800_092_71,
                28_729.085_735_721_943,
                5_226.495_278_852_854,
            ],
        );
        return q * above / below;
    }
    let r = (-p.ln()).sqrt() - 1.6;
    let above = polynomial(
        r,
        &[
            1.423_437_110_749_683_5,
            4.630_337_846_156_546,
            5.769_497_221_460_691,
            3.647_848_324_763_204_5,
            1.270_458_252_452_368_4,
            0.241_780_725_177_450_6,
            0.022_723_844_989_269_184,
            7.745_450_142_783_414e-4,
        ],
    );
    let below = polynomial(
        r,
        &[
            1.0,
            2.053_191_626_637_759,
            1.676_384_830_183_803_8,
            0.689_767_334_985_1,
            0.148_103_976_427_480_08,
            0.015_198_666_563_616_457,
            5.475_938_084_995_345e-4,
            1.050_750_071_644_416_9e-9,
        ],
    );
    -above / below
}

/// Of coefficients from the constant on.
fn polynomial(x: f64, coefficients: &[f64]) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum.mul_add(x, *coefficient))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Python's `statistics.NormalDist().inv_cdf`.
    #[test]
    fn quantiles_are_the_normal_distributions() {
        let table = normal_quantiles();
        for (at, expected) in [
            (0, -3.668_329_3),
            (100, -1.967_963_3),
            (1000, -0.692_656_1),
            (2047, -0.000_305_984_9),
            (3500, 1.056_430_7),
            (4095, 3.668_329_3),
        ] {
            let found = table[at];
            assert!((found - expected).abs() < 1e-6, "{at}: {found}, expected {expected}");
        }
        assert!(table.is_sorted());
    }

    #[test]
    fn channels_and_pixels_have_bits_of_their_own() {
        let key = [7, 9];
        let mut counts = [[0_u32; 16]; 3];
        for pixel in 0..16_000 {
            for (counts, at) in counts.iter_mut().zip(quantiles_of(key, pixel)) {
                counts[at / 256] += 1;
            }
        }
        // Of 1000 in each sixteenth; five times the standard deviation.
        assert!(counts.as_flattened().iter().all(|count| count.abs_diff(1000) < 155), "{counts:?}");
        assert_ne!(quantiles_of(key, 0), quantiles_of(key, 1));
        assert_ne!(quantiles_of([7, 10], 0), quantiles_of(key, 0));
    }
}
