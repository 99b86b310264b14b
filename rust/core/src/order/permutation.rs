//! A keyed permutation of `0..len` without a table.

use crate::rng::philox;

/// Rounds of the Feistel network. Each is a full Philox block, so four (the Luby-Rackoff bound
/// for a strong pseudo-random permutation) leave no order that a test here can see.
const ROUNDS: u32 = 4;

/// A pseudo-random permutation of `0..len`: a balanced Feistel network over the next even power
/// of two, walked until it lands inside (fewer than four steps on average). O(1) memory.
///
/// ```
/// use forebay_core::order::Permutation;
/// let permutation = Permutation::new(3, 42);
/// let mut all: Vec<u64> = (0..3).map(|i| permutation.apply(i)).collect();
/// all.sort();
/// assert_eq!(all, [0, 1, 2]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    len: u64,
    half_bits: u32,
    key: u64,
}

impl Permutation {
    /// The permutation of `0..len` that `key` names.
    pub fn new(len: u64, key: u64) -> Self {
        let bits = u64::BITS - len.saturating_sub(1).leading_zeros();
        Self { len, half_bits: bits.div_ceil(2).max(1), key }
    }

    /// Where `position` goes.
    ///
    /// # Panics
    /// If `position` is not below the length.
    pub fn apply(&self, position: u64) -> u64 {
        assert!(position < self.len, "position {position} is past the end, {}", self.len);
        let mut value = position;
        loop {
            value = self.encrypt(value);
            if value < self.len {
                return value;
            }
        }
    }

    fn encrypt(&self, value: u64) -> u64 {
        let mask = (1_u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ (self.scramble(right, round) & mask));
        }
        left << self.half_bits | right
    }

    #[allow(clippy::cast_possible_truncation, reason = "splits 64-bit numbers into halves")]
    fn scramble(&self, half: u64, round: u32) -> u64 {
        let counter = [half as u32, (half >> 32) as u32, round, self.half_bits];
        let [a, b, ..] = philox(counter, [self.key as u32, (self.key >> 32) as u32]);
        u64::from(a) | u64::from(b) << 32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_a_bijection() {
        for len in (1..70).chain([255, 256, 257, 1000, 4096, 65_537]) {
            let permutation = Permutation::new(len, len * 31);
            let mut seen = vec![false; usize::try_from(len).unwrap()];
            for position in 0..len {
                let at = usize::try_from(permutation.apply(position)).unwrap();
                assert!(!std::mem::replace(&mut seen[at], true), "ORD-2 at length {len}");
            }
        }
    }

    #[test]
    fn huge_lengths_stay_inside() {
        for len in [u64::from(u32::MAX) + 1, 1 << 40, u64::MAX >> 2] {
            let permutation = Permutation::new(len, 9);
            assert!(permutation.apply(len - 1) < len);
            assert!(permutation.apply(0) < len);
        }
    }

    #[test]
    fn t42_batches_mix_classes_as_a_full_shuffle_does() {
        // 100 classes of 1281 in class order, batches of 256: a full shuffle shows 92.4 distinct.
        let len = 128_100;
        let permutation = Permutation::new(len, 77);
        let batches = len / 256;
        let distinct: usize = (0..batches)
            .map(|batch| {
                (batch * 256..(batch + 1) * 256)
                    .map(|position| permutation.apply(position) / 1281)
                    .collect::<std::collections::BTreeSet<u64>>()
                    .len()
            })
            .sum();
        let mean = distinct as f64 / batches as f64;
        assert!((91.5..93.3).contains(&mean), "mean distinct classes {mean}");
    }

    #[test]
    fn positions_and_values_are_uncorrelated() {
        let len = 10_000;
        let permutation = Permutation::new(len, 5);
        let middle = (len - 1) as f64 / 2.0;
        let covariance: f64 =
            (0..len).map(|i| (i as f64 - middle) * (permutation.apply(i) as f64 - middle)).sum();
        let variance: f64 = (0..len).map(|i| (i as f64 - middle).powi(2)).sum();
        assert!((covariance / variance).abs() < 0.04, "correlation {}", covariance / variance);
    }
}
