//! Which decoders an image may go to, and which of them had better have it.
//!
//! Decoders are of two classes: those that work on the engine's threads, and those with engines of
//! their own. Which class decodes an image is decided when one of them is free, so that no speed has
//! to be known: threads and engines take from two ends of one queue. What is known are costs: how
//! many times longer the image takes on a thread than in an engine. Engines take from the end where
//! that is most, threads from the other one. A fixed share leaves nothing to decide.

use crate::assembly::FieldInfo;
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
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    pub(crate) thread: Option<Way>,
    pub(crate) engine: Option<Way>,
}

impl Ways {
    /// The cheapest decoder of each class. With a `share`, that part of the images for which there
    /// is an engine goes to it and the others to threads, by the image's number alone.
    pub(crate) fn new(
        decoders: &[Arc<dyn Decoder>],
        meta: &ImageMeta,
        region: Region,
        share: Option<f64>,
        number: u64,
    ) -> Self {
        let way = |(decoder, port): (usize, &Arc<dyn Decoder>)| {
            let cost = port.cost(meta, region)?.0;
            let (footprint, kind) = (port.footprint(meta, region), port.kind(meta));
            Some(Way { decoder, cost, footprint, kind })
        };
        let cheapest = |engines: bool| {
            let all = decoders.iter().enumerate();
            let class = all.filter(|(_, port)| port.engines().is_some() == engines);
            class.filter_map(way).min_by_key(|way| way.cost)
        };
        let ways = Self { thread: cheapest(false), engine: cheapest(true) };
        match (share, ways) {
            (Some(share), Self { thread: Some(_), engine: Some(_) }) if place(number) < share => {
                Self { thread: None, ..ways }
            }
            (Some(_), Self { thread: Some(_), .. }) => Self { engine: None, ..ways },
            _ => ways,
        }
    }

    /// How many times longer a thread takes, in hundredths.
    pub(crate) fn advantage(&self) -> u64 {
        match (self.thread, self.engine) {
            (Some(thread), Some(engine)) => {
                (thread.cost.saturating_mul(100) / engine.cost.max(1)).saturating_add(1)
            }
            (Some(_), None) => 0,
            (None, _) => u64::MAX,
        }
    }

    /// Fails if there is no way.
    pub(crate) fn check(self, info: &FieldInfo) -> Result<Self, Fault> {
        if self.thread.is_none() && self.engine.is_none() {
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
        let ways = |thread, engine| Ways { thread, engine };
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
