//! The order of an epoch: which sample stands at which position, and which positions make up
//! which rank's batches.
//!
//! **Invariants**
//! - ORD-1: the order is a pure function of (source length, shuffle, seed, epoch); a global batch
//!   is a contiguous range of positions, split among the ranks.
//! - ORD-2: shuffling is a permutation with O(1) memory and random access.
//! - ORD-3: the number of batches is the same in every epoch and on every rank.

mod permutation;

pub use permutation::Permutation;

use crate::rng::EpochKey;
use serde::{Deserialize, Serialize};

/// Draw numbers of [`EpochKey::constant`] that are spoken for.
const SHUFFLE: u32 = 0;
/// Place in the recipe of the draws that choose replacements; no recipe has that many steps.
const REPLACEMENT_PLACE: u16 = u16::MAX;

/// One position of an epoch and the sample that stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Place in the epoch's global order; keys the sample's random draws.
    pub position: u64,
    /// Which sample of the source.
    pub index: u64,
    /// Repeats an earlier position to fill up the last batch; `valid` is False there.
    pub pad: bool,
}

/// The tickets of one batch of one rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchTickets {
    /// Never empty.
    pub tickets: Vec<Ticket>,
    /// Global position at which the epoch goes on once this batch was handed out on all ranks.
    pub next_position: u64,
}

/// The epoch's global order of samples.
#[derive(Debug, Clone, Copy)]
pub struct Order {
    len: u64,
    shuffle: Option<Permutation>,
    key: EpochKey,
}

impl Order {
    /// The order of a source of `len` samples.
    pub fn new(len: u64, shuffle: bool, seed: u64, epoch: u64) -> Self {
        let key = EpochKey::new(seed, epoch);
        let shuffle = shuffle.then(|| Permutation::new(len, key.constant(SHUFFLE)));
        Self { len, shuffle, key }
    }

    /// The sample at `position`, which must be below the length.
    pub fn index(&self, position: u64) -> u64 {
        match &self.shuffle {
            Some(permutation) => permutation.apply(position),
            None => position,
        }
    }

    /// The key of the epoch's random draws.
    pub fn key(&self) -> EpochKey {
        self.key
    }

    /// The sample that replaces a bad one at `position`, on the given attempt (ERR-1). An order
    /// without shuffling draws the sample itself, which is what feeds from Python need.
    pub fn replacement(&self, position: u64, attempt: u16) -> u64 {
        self.index(self.key.draws(position, REPLACEMENT_PLACE, attempt).below(self.len))
    }
}

/// What happens to positions that do not fill a global batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LastBatch {
    /// They are not delivered.
    Drop,
    /// A smaller batch; for one rank only.
    Partial,
    /// A smaller batch, completed to a multiple of the world size from the epoch's first positions.
    Pad,
}

/// How positions are dealt into batches and ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dealing {
    /// Samples per rank and batch, at least 1.
    pub batch_size: u64,
    /// This rank, below `world_size`.
    pub rank: u64,
    /// Number of ranks, at least 1.
    pub world_size: u64,
    /// What happens at the end.
    pub last_batch: LastBatch,
}

impl Dealing {
    fn global_batch(&self) -> u64 {
        self.batch_size * self.world_size
    }

    /// Batches per rank from `start` on, in an epoch of `len` positions.
    ///
    /// ```
    /// use forebay_core::order::{Dealing, LastBatch};
    /// let dealing = Dealing { batch_size: 6, rank: 0, world_size: 4, last_batch: LastBatch::Pad };
    /// assert_eq!(dealing.batches(26, 0), 2);
    /// ```
    pub fn batches(&self, len: u64, start: u64) -> u64 {
        let left = len.saturating_sub(start);
        match self.last_batch {
            LastBatch::Drop => left / self.global_batch(),
            LastBatch::Partial | LastBatch::Pad => left.div_ceil(self.global_batch()),
        }
    }

    /// This rank's part of the global batch that begins at position `start`; `None` at the end.
    pub fn batch(&self, order: &Order, start: u64) -> Option<BatchTickets> {
        let left = order.len.saturating_sub(start);
        if left == 0 || (left < self.global_batch() && self.last_batch == LastBatch::Drop) {
            return None;
        }
        let taken = left.min(self.global_batch());
        let per_rank = taken.div_ceil(self.world_size);
        let first = start + self.rank * per_rank;
        let ticket = |position: u64| {
            let pad = position >= order.len;
            let source = if pad { (position - order.len) % order.len } else { position };
            Ticket { position, index: order.index(source), pad }
        };
        Some(BatchTickets {
            tickets: (first..first + per_rank).map(ticket).collect(),
            next_position: start + taken,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_batches(len: u64, dealing: Dealing, order: &Order) -> Vec<BatchTickets> {
        let mut start = 0;
        let mut batches = Vec::new();
        while let Some(batch) = dealing.batch(order, start) {
            start = batch.next_position;
            batches.push(batch);
        }
        assert_eq!(batches.len() as u64, dealing.batches(len, 0), "ORD-3");
        batches
    }

    #[test]
    fn t36_every_rank_gets_the_same_number_of_batches() {
        let order = Order::new(26, true, 1, 0);
        for (last_batch, sizes) in [(LastBatch::Drop, vec![6]), (LastBatch::Pad, vec![6, 1])] {
            let mut seen = Vec::new();
            for rank in 0..4 {
                let dealing = Dealing { batch_size: 6, rank, world_size: 4, last_batch };
                let batches = all_batches(26, dealing, &order);
                let got: Vec<usize> = batches.iter().map(|batch| batch.tickets.len()).collect();
                assert_eq!(got, sizes);
                let tickets = batches.into_iter().flat_map(|batch| batch.tickets);
                seen.extend(tickets.filter(|ticket| !ticket.pad).map(|ticket| ticket.index));
            }
            seen.sort_unstable();
            match last_batch {
                LastBatch::Drop => assert_eq!(seen.len(), 24),
                LastBatch::Partial | LastBatch::Pad => {
                    assert_eq!(seen, (0..26).collect::<Vec<u64>>());
                }
            }
        }
    }

    #[test]
    fn t38_length_is_equal_on_all_ranks_and_epochs() {
        let len = 17_091_657;
        for last_batch in [LastBatch::Drop, LastBatch::Pad] {
            let lengths: std::collections::BTreeSet<u64> = (0..6)
                .map(|rank| Dealing { batch_size: 200, rank, world_size: 6, last_batch })
                .map(|dealing| dealing.batches(len, 0))
                .collect();
            let expected = if last_batch == LastBatch::Drop { 14_243 } else { 14_244 };
            assert_eq!(lengths, [expected].into());
        }
    }

    #[test]
    fn pads_repeat_the_epochs_first_positions() {
        let order = Order::new(5, false, 0, 0);
        let dealing = Dealing { batch_size: 4, rank: 1, world_size: 2, last_batch: LastBatch::Pad };
        let batch = dealing.batch(&order, 0).unwrap();
        let got: Vec<(u64, bool)> =
            batch.tickets.iter().map(|ticket| (ticket.index, ticket.pad)).collect();
        assert_eq!(got, [(3, false), (4, false), (0, true)]);
        assert_eq!(batch.next_position, 5, "pads are not counted");
    }

    #[test]
    fn a_world_larger_than_the_source_still_gets_a_sample_each() {
        let order = Order::new(2, true, 0, 0);
        let dealing =
            |rank| Dealing { batch_size: 3, rank, world_size: 7, last_batch: LastBatch::Pad };
        for rank in 0..7 {
            assert_eq!(dealing(rank).batch(&order, 0).unwrap().tickets.len(), 1);
        }
    }

    #[test]
    fn resuming_at_a_position_goes_on_with_the_same_order() {
        let order = Order::new(100, true, 5, 2);
        let dealing =
            Dealing { batch_size: 8, rank: 0, world_size: 1, last_batch: LastBatch::Partial };
        let after = dealing.batch(&order, 37).unwrap();
        let expected: Vec<u64> = (37..45).map(|position| order.index(position)).collect();
        let got: Vec<u64> = after.tickets.iter().map(|ticket| ticket.index).collect();
        assert_eq!(got, expected);
    }
}
