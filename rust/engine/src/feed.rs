//! Where tickets come from: the epoch's order, or batches pushed from outside.

use crate::{Error, FeedConfig};
use forebay_core::order::{BatchTickets, Dealing, Order, Ticket};
use forebay_core::rng::EpochKey;
use std::collections::VecDeque;

/// One epoch's tickets, batch by batch.
#[derive(Debug)]
pub(crate) struct Feed {
    kind: Kind,
    /// Where the next batch begins: a global position, or a local ordinal.
    cursor: u64,
    key: EpochKey,
    /// Names replacements; `None` for sources without length.
    replacements: Option<Order>,
}

#[derive(Debug)]
enum Kind {
    Ordered { order: Order, dealing: Dealing, len: u64 },
    Pushed { shard: u64, shards: u64, len: Option<u64>, batches: VecDeque<Vec<u64>>, ended: bool },
}

impl Feed {
    pub(crate) fn new(
        config: &FeedConfig,
        len: Option<u64>,
        epoch: u64,
        position: u64,
    ) -> Result<Self, Error> {
        let key = EpochKey::new(config.seed(), epoch);
        let (kind, replacements) = match *config {
            FeedConfig::Ordered { seed, shuffle, dealing } => {
                let len = len.ok_or_else(no_length)?;
                if position > len {
                    return Err(Error::Position { position, len });
                }
                let order = Order::new(len, shuffle, seed, epoch);
                (Kind::Ordered { order, dealing, len }, Some(order))
            }
            FeedConfig::Pushed { seed, shard, shards } => {
                let kind =
                    Kind::Pushed { shard, shards, len, batches: VecDeque::new(), ended: false };
                (kind, len.map(|len| Order::new(len, false, seed, epoch)))
            }
        };
        Ok(Self { kind, cursor: position, key, replacements })
    }

    /// The key of the epoch's draws.
    pub(crate) fn key(&self) -> EpochKey {
        self.key
    }

    /// Where the batches taken so far end.
    pub(crate) fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The next batch; `None` at the end, and while nothing was pushed.
    pub(crate) fn take(&mut self) -> Option<BatchTickets> {
        let batch = match &mut self.kind {
            Kind::Ordered { order, dealing, .. } => dealing.batch(order, self.cursor)?,
            Kind::Pushed { shard, shards, batches, .. } => {
                let first = self.cursor;
                let tickets: Vec<Ticket> = (first..)
                    .zip(batches.pop_front()?)
                    .map(|(ordinal, index)| Ticket {
                        position: ordinal.wrapping_mul(*shards).wrapping_add(*shard),
                        index,
                        pad: false,
                    })
                    .collect();
                let next_position = first + tickets.len() as u64;
                BatchTickets { tickets, next_position }
            }
        };
        self.cursor = batch.next_position;
        Some(batch)
    }

    /// Whether `take` has nothing more to give, ever.
    pub(crate) fn exhausted(&self) -> bool {
        match &self.kind {
            Kind::Ordered { dealing, len, .. } => dealing.batches(*len, self.cursor) == 0,
            Kind::Pushed { batches, ended, .. } => *ended && batches.is_empty(),
        }
    }

    /// The sample that takes the place of a bad one (ERR-1).
    pub(crate) fn replacement(&self, position: u64, attempt: u16) -> Option<u64> {
        Some(self.replacements?.replacement(position, attempt))
    }

    /// Accepts a batch of indices from outside.
    pub(crate) fn push(&mut self, indices: &[u64]) -> Result<(), Error> {
        let refused = |reason| Error::Feed { call: "push_batch", reason };
        let Kind::Pushed { len, batches, ended, .. } = &mut self.kind else {
            return Err(refused(NOT_PUSHED));
        };
        if *ended {
            return Err(refused("the epoch's end was pushed already"));
        }
        if indices.is_empty() {
            return Err(refused("a batch has at least one sample"));
        }
        if let Some(len) = *len
            && let Some(&index) = indices.iter().find(|&&index| index >= len)
        {
            return Err(Error::Index { index, len });
        }
        batches.push_back(indices.to_vec());
        Ok(())
    }

    /// No more batches will come in this epoch.
    pub(crate) fn push_end(&mut self) -> Result<(), Error> {
        let Kind::Pushed { ended, .. } = &mut self.kind else {
            return Err(Error::Feed { call: "push_end", reason: NOT_PUSHED });
        };
        *ended = true;
        Ok(())
    }

    /// Batches that wait to be taken; `None` if no more can be pushed.
    pub(crate) fn waiting(&self) -> Option<usize> {
        match &self.kind {
            Kind::Pushed { batches, ended: false, .. } => Some(batches.len()),
            _ => None,
        }
    }
}

const NOT_PUSHED: &str = "the feed is an order, not pushed batches";

/// A source without length has no order.
pub(crate) fn no_length() -> Error {
    Error::Option {
        option: "feed",
        reason: "a source without length has no order, push batches instead".to_owned(),
    }
}
