//! Which decoder an image goes to: the one that would have it done first.

use crate::assembly::FieldInfo;
use forebay_core::ports::{Decoder, Fault, Stage};
use forebay_core::{ImageMeta, Region};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The decoders' queues, in nanoseconds of work that was routed and is not done.
#[derive(Debug)]
pub(crate) struct Routes {
    queues: Arc<[AtomicU64]>,
    /// How many jobs each decoder works on at once.
    lanes: Vec<u64>,
}

/// One image's part of a queue, until this is dropped.
#[derive(Debug)]
pub(crate) struct Load {
    queues: Arc<[AtomicU64]>,
    decoder: usize,
    cost: u64,
}

impl Drop for Load {
    fn drop(&mut self) {
        self.queues[self.decoder].fetch_sub(self.cost, Ordering::Relaxed);
    }
}

impl Routes {
    /// `workers` threads run the decoders that have no lanes of their own.
    pub(crate) fn new(decoders: &[Arc<dyn Decoder>], workers: usize) -> Self {
        let lanes = |decoder: &Arc<dyn Decoder>| decoder.lanes().unwrap_or(workers).max(1) as u64;
        Self {
            queues: decoders.iter().map(|_| AtomicU64::new(0)).collect(),
            lanes: decoders.iter().map(lanes).collect(),
        }
    }

    /// The decoder that would be done first, the first of equals.
    pub(crate) fn choose(
        &self,
        decoders: &[Arc<dyn Decoder>],
        meta: &ImageMeta,
        region: Region,
        info: &FieldInfo,
    ) -> Result<(usize, Load), Fault> {
        let done = |(number, decoder): (usize, &Arc<dyn Decoder>)| {
            let cost = decoder.cost(meta, region)?.0;
            let queue = self.queues[number].load(Ordering::Relaxed);
            Some((queue.saturating_add(cost) / self.lanes[number], number, cost))
        };
        let first = decoders.iter().enumerate().filter_map(done).min();
        let (_, decoder, cost) = first.ok_or_else(|| {
            let path = &info.path;
            Fault::new(Stage::Decode, format!("{path}: no decoder for this image"))
        })?;
        self.queues[decoder].fetch_add(cost, Ordering::Relaxed);
        Ok((decoder, Load { queues: Arc::clone(&self.queues), decoder, cost }))
    }
}
