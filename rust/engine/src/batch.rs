//! A batch as it is handed out.

use forebay_core::Mixing;
use forebay_core::ports::{Stage, Token};
use forebay_slab::SealedSlab;
use std::sync::Arc;

/// A bad sample, as users see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Position of the slot that it should have filled.
    pub position: u64,
    /// Which sample.
    pub index: u64,
    /// The sample's name: a path, or shard and offset.
    pub key: String,
    /// Where it failed.
    pub stage: Stage,
    /// What is wrong.
    pub reason: String,
    /// 0 for the slot's own sample, from 1 on for its replacements.
    pub attempt: u16,
    /// The source's request for it.
    pub token: Token,
}

/// One batch, handed out in the epoch's order.
#[derive(Debug)]
pub struct Batch {
    /// Which epoch.
    pub epoch: u64,
    /// The sample in each slot, after replacements.
    pub indices: Vec<u64>,
    /// Position of each slot.
    pub positions: Vec<u64>,
    /// The source's request for the sample in each slot.
    pub tokens: Vec<Token>,
    /// False for pads and for samples that are not there.
    pub valid: Vec<bool>,
    /// `(height, width)` of each sample's first image as the recipe sees it; zeros where it is not
    /// there.
    pub sizes: Vec<[i64; 2]>,
    /// Bad samples, by slot and attempt.
    pub failures: Vec<Failure>,
    /// Which of the failures is to be raised.
    pub raise: Option<usize>,
    /// The batch's memory; `None` if a failure is to be raised.
    pub slab: Option<Arc<SealedSlab>>,
    /// How its images were mixed with each other, in order.
    pub mixes: Arc<[Mixing]>,
    /// By slot the one whose image was mixed into it; `None` for slots without an image. Empty if
    /// nothing was mixed.
    pub partners: Vec<Option<usize>>,
    /// Where the epoch goes on after this batch: what `start_epoch` takes.
    pub next_position: u64,
}

impl Batch {
    /// The bad sample to raise: the first by position that left its slot empty.
    pub fn raised(&self) -> Option<&Failure> {
        self.failures.get(self.raise?)
    }
}
