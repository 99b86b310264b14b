//! Which images go into one submit to engines: those of one kind, across batches.

use crate::assembly::{Assembly, Place};
use crate::run::Run;
use forebay_core::ports::Engines;

/// The image for which an engine is most worth, if any may go to one.
pub(crate) fn engine_place(batch: &Assembly) -> Option<Place> {
    let (place, task) = batch.decode.last_key_value()?;
    task.ways.engine.map(|_| *place)
}

/// Decoder and kind of most of the images that may go to engines.
pub(crate) fn most_frequent_kind(batch: &Assembly) -> Option<(usize, u64)> {
    let mut kinds: Vec<((usize, u64), usize)> = Vec::new();
    for way in batch.decode.values().filter_map(|task| task.ways.engine) {
        let kind = (way.decoder, way.kind);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    kinds.into_iter().max_by_key(|(_, count)| *count).map(|(kind, _)| kind)
}

/// Images of one kind that may go into one submit, by batch.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) images: Vec<(usize, Place)>,
    /// More would not make engines busier.
    pub(crate) is_full: bool,
    /// No thread can decode some of them.
    is_theirs: bool,
}

impl Group {
    /// A submit takes some time of its own: few images are left to threads.
    pub(crate) fn is_worth_it(&self, engines: &Engines) -> bool {
        self.is_full || self.is_theirs || self.images.len() >= engines.jobs.div_ceil(4)
    }
}

/// Images of one kind for one submit, those first for which engines are most worth, from the batch
/// at `first` and, as far as there is room, from later ones.
pub(crate) fn choose(run: &Run, first: usize, kind: (usize, u64), engines: &Engines) -> Group {
    let mut group = Group::default();
    let mut cost = 0;
    for (number, batch) in run.batches.iter().enumerate().skip(first) {
        for (&place, task) in batch.decode.iter().rev() {
            let Some(way) = task.ways.engine else { break };
            if (way.decoder, way.kind) != kind {
                continue;
            }
            group.is_theirs |= task.ways.thread.is_none();
            group.images.push((number, place));
            cost += way.cost;
            group.is_full = group.images.len() >= engines.jobs || cost >= engines.cost.0;
            if group.is_full {
                return group;
            }
        }
    }
    group
}
