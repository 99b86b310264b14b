//! One epoch being delivered: the batches in flight, and what tells its work from older epochs'.

use crate::OnError;
use crate::assembly::{Assembly, Settled};
use crate::budget::{Budget, Permit};
use crate::feed::Feed;
use crate::shared::At;
use forebay_core::order::BatchTickets;
use forebay_core::ports::Stop;
use std::collections::VecDeque;

/// A batch on its way out.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) run: u64,
    pub(crate) epoch: u64,
    pub(crate) batch: Assembly,
}

/// One epoch being delivered.
#[derive(Debug)]
pub(crate) struct Run {
    /// Tells its work from that of runs before it.
    pub(crate) id: u64,
    pub(crate) epoch: u64,
    pub(crate) feed: Feed,
    pub(crate) stop: Stop,
    /// Tickets for which there was no room.
    pub(crate) next_up: Option<BatchTickets>,
    /// In flight, in order.
    pub(crate) batches: VecDeque<Assembly>,
    /// Ordinal of the first of them.
    pub(crate) first: u64,
    /// Falls when an allocation fails.
    pub(crate) depth: usize,
    /// Where the batches handed out end (RES-1).
    pub(crate) delivered: u64,
}

impl Run {
    /// Whether every batch was handed out.
    pub(crate) fn finished(&self) -> bool {
        self.feed.exhausted() && self.feed.cursor() == self.delivered
    }

    /// Takes the batch that is due, if it is done.
    pub(crate) fn take_due(&mut self) -> Option<Due> {
        if !self.batches.front()?.done() {
            return None;
        }
        self.first += 1;
        let mut batch = self.batches.pop_front()?;
        // What the user has does not count (MEM-1).
        batch.permit = None;
        Some(Due { run: self.id, epoch: self.epoch, batch })
    }

    pub(crate) fn batch(&mut self, at: At) -> Option<&mut Assembly> {
        let number = self.number(at)?;
        self.batches.get_mut(number)
    }

    /// See [`Assembly::settle`].
    pub(crate) fn settle(&mut self, at: At, policy: OnError) -> Option<Settled> {
        let number = self.number(at)?;
        let batch = self.batches.get_mut(number)?;
        batch.settle(at.sample, policy, &self.feed)
    }

    /// Bytes of the budget that reads leave alone: a quarter of what the slabs do not take. With
    /// the whole budget full of encoded bytes, decoding could run only one image at a time.
    pub(crate) fn spare(&self, budget: &Budget) -> u64 {
        let permits = self.batches.iter().filter_map(|batch| batch.permit.as_ref());
        budget.limit().saturating_sub(permits.map(Permit::bytes).sum()) / 4
    }

    /// Names samples of the batch at `number`.
    pub(crate) fn at(&self, number: usize) -> impl Fn(usize) -> At + use<> {
        let (run, batch) = (self.id, self.first + number as u64);
        move |sample| At { run, batch, sample }
    }

    fn number(&self, at: At) -> Option<usize> {
        let number = at.batch.checked_sub(self.first)?;
        usize::try_from(number).ok().filter(|_| at.run == self.id)
    }
}
