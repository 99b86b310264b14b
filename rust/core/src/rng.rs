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
}
