//! Which decoders an image may go to, and which of them had better have it.
//!
//! Decoders are of two classes: those that work on the engine's threads, and those with engines of
//! their own. Which one decodes an image is decided when one of them is free: threads and engines
//! take from two ends of one queue (`groups`). What is known are costs: how many times longer the
//! image takes on a thread than in an engine. Engines take from the end where that is most, threads
//! from the other one. Engines that keep a thread busy get what those that let it sleep cannot
//! decode: they would be slower with the rest, and hold up its batches. Fixed shares leave nothing to
//! decide.

use crate::assembly::FieldInfo;
use crate::config::Shares;
use forebay_core::ports::{Decoder, Fault, Stage};
use forebay_core::{ImageMeta, Region};
use std::sync::Arc;

/// One decoder that an image may go to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Way {
    pub(crate) decoder: usize,
    /// Nanoseconds, as the decoder estimates.
    pub(crate) cost: u64,
    /// Bytes that decoding holds beside the encoded ones.
    pub(crate) footprint: u64,
    /// Images of different kinds do not go into one submit.
    pub(crate) kind: u64,
}

/// Where an image may be decoded; there is at least one way.
#[derive(Debug, Clone)]
pub(crate) struct Ways {
    /// The cheapest.
    pub(crate) thread: Option<Way>,
    pub(crate) engines: Vec<Way>,
    /// Part of a full submit to engines that it is, in [`SUBMIT`]ths.
    pub(crate) weight: u64,
}

/// A full submit.
pub(crate) const SUBMIT: u64 = 1 << 16;

impl Ways {
    /// All of them; with `shares` the one that the image's number alone says, or a thread where that
    /// decoder cannot.
    pub(crate) fn new(
        decoders: &[Arc<dyn Decoder>],
        meta: &ImageMeta,
        region: Region,
        shares: Option<Shares>,
        number: u64,
    ) -> Self {
        let way = |(decoder, port): (usize, &Arc<dyn Decoder>)| {
            let cost = port.cost(meta, region)?.0;
            let (footprint, kind) = (port.footprint(meta, region), port.kind(meta));
            Some(Way { decoder, cost, footprint, kind })
        };
        let class = |busy: Option<bool>| {
            let all = decoders.iter().enumerate();
            let is_it =
                move |port: &dyn Decoder| port.engines().map(|engines| engines.busy) == busy;
            all.filter(move |(_, port)| is_it(&***port)).filter_map(way)
        };
        let mut thread = class(None).min_by_key(|way| way.cost);
        let mut engines: Vec<Way> = class(Some(false)).collect();
        if engines.is_empty() || shares.is_some() {
            engines.extend(class(Some(true)));
        }
        if let Some(shares) = shares
            && thread.is_some()
        {
            let chosen = shares.decoder(place(number));
            engines.retain(|way| Some(way.decoder) == chosen);
            thread = thread.filter(|_| engines.is_empty());
        }
        let weights = engines.iter().filter_map(|way| {
            let full = decoders[way.decoder].engines()?;
            let by_cost = way.cost.saturating_mul(SUBMIT) / full.cost.0.max(1);
            Some(by_cost.max(SUBMIT / full.jobs.max(1) as u64))
        });
        let weight = weights.sum::<u64>() / engines.len().max(1) as u64;
        Self { thread, engines, weight }
    }

    /// Of the engines that are quickest with it.
    pub(crate) fn engine_cost(&self) -> Option<u64> {
        self.engines.iter().map(|way| way.cost).min()
    }

    /// That of a decoder with engines.
    pub(crate) fn engine(&self, decoder: usize) -> Option<Way> {
        self.engines.iter().copied().find(|way| way.decoder == decoder)
    }

    /// How many times longer a thread takes, in hundredths.
    pub(crate) fn advantage(&self) -> u64 {
        match (self.thread, self.engine_cost()) {
            (Some(thread), Some(engine)) => {
                (thread.cost.saturating_mul(100) / engine.max(1)).saturating_add(1)
            }
            (Some(_), None) => 0,
            (None, _) => u64::MAX,
        }
    }

    /// Fails if there is no way.
    pub(crate) fn check(self, info: &FieldInfo) -> Result<Self, Fault> {
        if self.thread.is_none() && self.engines.is_empty() {
            let path = &info.path;
            return Err(Fault::new(Stage::Decode, format!("{path}: no decoder for this image")));
        }
        Ok(self)
    }
}

/// A number in [0, 1); numbers of consecutive images spread evenly.
fn place(number: u64) -> f64 {
    const GOLDEN_RATIO: u64 = 0x9E37_79B9_7F4A_7C15;
    (number.wrapping_mul(GOLDEN_RATIO) >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_that_part_of_any_run_of_images() {
        for share in [0.0, 0.25, 0.8, 1.0] {
            for first in [0, 1, 12_345, u64::MAX / 3] {
                let taken = (first..first + 100).filter(|&number| place(number) < share).count();
                assert!((taken as f64 - 100.0 * share).abs() <= 2.0, "{taken} of 100 for {share}");
            }
        }
    }

    #[test]
    fn advantages_order_images_from_threads_only_to_engines_only() {
        let way = |cost| Some(Way { decoder: 0, cost, footprint: 0, kind: 0 });
        let ways = |thread, engine: Option<Way>| Ways {
            thread,
            engines: Vec::from_iter(engine),
            weight: 0,
        };
        let ordered = [
            ways(way(9), None),
            ways(way(0), way(50)),
            ways(way(500), way(50)),
            ways(way(900), way(50)),
            ways(None, way(50)),
        ];
        assert!(ordered.windows(2).all(|pair| pair[0].advantage() < pair[1].advantage()));
    }
}
