//! Counter-based random numbers: Philox 4x32-10.
//!
//! **Invariants**
//! - RNG-1: a number is a pure function of (seed, epoch, position, place in the recipe, draw
//!   group, draw number). Nothing else, threads and batches least of all, has a say.
//!
//! The generator is that of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC'11).

const MULTIPLIER: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Ten rounds of Philox over `counter` under `key`.
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut a, mut b, mut c, mut d] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..10 {
        let left = u64::from(MULTIPLIER[0]) * u64::from(a);
        let right = u64::from(MULTIPLIER[1]) * u64::from(c);
        [a, b, c, d] = [high(right) ^ b ^ k0, low(right), high(left) ^ d ^ k1, low(left)];
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    [a, b, c, d]
}

#[allow(clippy::cast_possible_truncation, reason = "splits a 64-bit product into its halves")]
fn low(product: u64) -> u32 {
    product as u32
}

fn high(product: u64) -> u32 {
    low(product >> 32)
}

/// The part of the key that all samples of one epoch share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochKey {
    key: [u32; 2],
}

impl EpochKey {
    /// Derives the key of `epoch` under `seed`.
    pub fn new(seed: u64, epoch: u64) -> Self {
        let [a, b, ..] = philox([low(epoch), high(epoch), 0, 0], [low(seed), high(seed)]);
        Self { key: [a, b] }
    }

    /// A 64-bit number that is not tied to any sample (an epoch's permutation, say).
    pub fn constant(self, number: u32) -> u64 {
        let [a, b, ..] = philox([number, u32::MAX, u32::MAX, u32::MAX], self.key);
        u64::from(a) | u64::from(b) << 32
    }

    /// The stream of draws of one sample's place in the recipe and draw group.
    pub fn draws(self, position: u64, place: u16, group: u16) -> Draws {
        Draws {
            key: self.key,
            counter: [0, low(position), high(position), u32::from(place) << 16 | u32::from(group)],
            block: [0; 4],
            left: 0,
        }
    }
}

/// A stream of random numbers; each is named by its ordinal in the stream.
///
/// ```
/// use forebay_core::rng::EpochKey;
/// let mut draws = EpochKey::new(7, 0).draws(1_000_000, 0, 0);
/// assert!((0.0..1.0).contains(&draws.unit()));
/// ```
#[derive(Debug, Clone)]
pub struct Draws {
    key: [u32; 2],
    counter: [u32; 4],
    block: [u32; 4],
    left: usize,
}

impl Draws {
    fn next_u32(&mut self) -> u32 {
        if self.left == 0 {
            self.block = philox(self.counter, self.key);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.left = 4;
        }
        self.left -= 1;
        self.block[3 - self.left]
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        u64::from(self.next_u32()) | u64::from(self.next_u32()) << 32
    }

    /// A key of random numbers of its own.
    pub fn key(&mut self) -> [u32; 2] {
        [self.next_u32(), self.next_u32()]
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `[low, high)`; `low` if the interval is empty.
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// Uniform among `0..bound` (Lemire's multiply-shift; bias below 2^-32 for bounds below 2^32).
    ///
    /// # Panics
    /// Never for `bound >= 1`.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(bound);
        u64::try_from(product >> 64).expect("the high half of a 128-bit product fits 64 bits")
    }

    /// True with probability `p`.
    pub fn bernoulli(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Normal, of mean 0 and variance 1, by the Box-Muller transform.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Logarithm of a number with the gamma distribution of shape `alpha` and scale 1: Marsaglia and
    /// Tsang, "A simple method for generating gamma variables", 2000, for shapes below 1 by their
    /// remark on page 371. Small shapes give numbers that only their logarithm can hold.
    fn log_gamma(&mut self, alpha: f64) -> f64 {
        if alpha < 1.0 {
            let part = (1.0 - self.unit()).ln() / alpha;
            return part + self.log_gamma(alpha + 1.0);
        }
        let d = alpha - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let root = 1.0 + c * x;
            if root <= 0.0 {
                continue;
            }
            let log_v = 3.0 * root.ln();
            if (1.0 - self.unit()).ln() < 0.5 * x * x + d - d * log_v.exp() + d * log_v {
                return d.ln() + log_v;
            }
        }
    }

    /// `count` weights that add up to 1, with the symmetric Dirichlet distribution.
    pub fn dirichlet(&mut self, alpha: f64, count: usize) -> Vec<f64> {
        let logs: Vec<f64> = (0..count).map(|_| self.log_gamma(alpha)).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: Vec<f64> = logs.into_iter().map(|log| (log - most).exp()).collect();
        let sum: f64 = shares.iter().sum();
        shares.into_iter().map(|share| share / sum).collect()
    }

    /// With the beta distribution of both shapes `alpha`.
    pub fn beta(&mut self, alpha: f64) -> f64 {
        self.dirichlet(alpha, 2)[0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_matches_the_published_vectors() {
        // kat_vectors of Random123 1.14, philox4x32 with 10 rounds.
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox(
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0]
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn streams_differ_by_every_part_of_their_name() {
        let first = |seed, epoch, position, place, group| {
            EpochKey::new(seed, epoch).draws(position, place, group).bits()
        };
        let all = [
            first(0, 0, 0, 0, 0),
            first(1, 0, 0, 0, 0),
            first(0, 1, 0, 0, 0),
            first(0, 0, 1, 0, 0),
            first(0, 0, 0, 1, 0),
            first(0, 0, 0, 0, 1),
            first(0, 0, 1 << 32, 0, 0),
        ];
        let distinct: std::collections::BTreeSet<u64> = all.into_iter().collect();
        assert_eq!(distinct.len(), all.len());
    }

    #[test]
    fn uniform_numbers_fill_their_interval() {
        let mut draws = EpochKey::new(3, 9).draws(0, 0, 0);
        let numbers: Vec<f64> = (0..100_000).map(|_| draws.uniform(2.0, 4.0)).collect();
        let mean = numbers.iter().sum::<f64>() / 100_000.0;
        assert!(numbers.iter().all(|x| (2.0..4.0).contains(x)));
        assert!((mean - 3.0).abs() < 0.01, "mean {mean}");
        let counts = (0..60_000).fold([0_u32; 6], |mut counts, _| {
            counts[usize::try_from(draws.below(6)).unwrap()] += 1;
            counts
        });
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    /// Largest distance of the drawn numbers' distribution from `cdf`, times the root of their count:
    /// above 1.63 once in a hundred times (Kolmogorov and Smirnov).
    fn distance(mut drawn: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
        drawn.sort_by(f64::total_cmp);
        let count = drawn.len() as f64;
        let off = |(place, x): (usize, &f64)| {
            let (low, high) = (place as f64 / count, (place + 1) as f64 / count);
            (cdf(*x) - low).abs().max((cdf(*x) - high).abs())
        };
        drawn.iter().enumerate().map(off).fold(0.0, f64::max) * count.sqrt()
    }

    #[test]
    fn beta_numbers_have_their_distribution() {
        let draw = |alpha| -> Vec<f64> {
            let key = EpochKey::new(11, 0);
            (0..100_000).map(|position| key.draws(position, 0, 0).beta(alpha)).collect()
        };
        assert!(distance(draw(1.0), |x| x) < 1.63);
        let arcsine = |x: f64| std::f64::consts::FRAC_2_PI * x.sqrt().asin();
        assert!(distance(draw(0.5), arcsine) < 1.63);
        assert!(distance(draw(2.0), |x| x * x * (3.0 - 2.0 * x)) < 1.63);
        let extreme = draw(1e-4);
        assert!(extreme.iter().all(|x| (0.0..=1.0).contains(x)));
        let high = extreme.iter().filter(|x| **x > 0.5).count();
        assert!((49_000..51_000).contains(&high), "{high}");
    }

    #[test]
    fn shares_add_up_and_have_their_distribution() {
        let key = EpochKey::new(11, 1);
        let all = (0..100_000).map(|position| key.draws(position, 0, 0).dirichlet(1.0, 3));
        let firsts = all.map(|shares| {
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            shares[0]
        });
        // Of three, each has the beta distribution of shapes 1 and 2.
        assert!(distance(firsts.collect(), |x| 1.0 - (1.0 - x) * (1.0 - x)) < 1.63);
    }
}
