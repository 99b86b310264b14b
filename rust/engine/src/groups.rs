//! Which images go to engines, and which to threads.
//!
//! **Rules**
//! - A submit holds images of one kind, of several batches. It waits for enough of them
//!   unless nothing more of its first batch is on the way. Once it is a quarter full, it takes none
//!   of a later batch: batches that are decoded together are handed out together.
//! - Threads leave a full submit to every decoder with engines: one that took the image at hand would
//!   not prepare others meanwhile, of which engines decode a dozen in that time.
//! - When nothing more is on the way, a thread takes an image if it is done with it sooner than
//!   engines with all that they have, or if these wait for more.

use crate::assembly::{Assembly, DecodeTask, ForEngines, Place};
use crate::budget::Budget;
use crate::route::SUBMIT;
use crate::run::Run;
use crate::scheduler::Backends;
use crate::shared::State;
use forebay_core::ports::Engines;

/// Whether an image waits that engines may have.
pub(crate) fn has_engine_work(batch: &Assembly) -> bool {
    batch.for_engines.images > 0
}

/// Kind of most of the images that may go to a decoder with engines.
fn most_frequent_kind(batch: &Assembly, decoder: usize) -> Option<u64> {
    let mut kinds: Vec<(u64, usize)> = Vec::new();
    for way in batch.decode.values().filter_map(|task| task.ways.engine(decoder)) {
        match kinds.iter_mut().find(|(known, _)| *known == way.kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((way.kind, 1)),
        }
    }
    kinds.into_iter().max_by_key(|(_, count)| *count).map(|(kind, _)| kind)
}

/// Images of one kind that may go into one submit, by batch.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) images: Vec<(usize, Place)>,
    /// More would not make engines busier.
    is_full: bool,
    /// No thread can decode some of them.
    is_theirs: bool,
}

impl Group {
    /// A submit takes some time of its own: few images are left to threads.
    fn is_worth_it(&self, engines: &Engines) -> bool {
        self.is_full || self.is_theirs || self.images.len() >= engines.least
    }
}

/// Images of one kind for one submit, those first for which engines are most worth, from the batch
/// at `first` and, as far as there is room, from later ones.
fn choose(run: &Run, first: usize, decoder: usize, kind: u64, engines: &Engines) -> Group {
    let mut group = Group::default();
    let mut cost = 0;
    for number in first..run.batches.len() {
        if number > first && !engines.busy && 4 * cost >= engines.cost.0 {
            break;
        }
        for (&place, task) in run.batches[number].decode.iter().rev() {
            let Some(way) = task.ways.engine(decoder).filter(|way| way.kind == kind) else {
                continue;
            };
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

impl State {
    /// What a decoder with engines had best get, if it need not wait for more.
    pub(crate) fn engine_group(
        &self,
        run: &Run,
        decoder: usize,
        backends: &Backends,
        budget: &Budget,
    ) -> Option<Group> {
        let engines = backends.engines[decoder].as_ref()?;
        for first in 0..run.batches.len() {
            let Some(kind) = most_frequent_kind(&run.batches[first], decoder) else {
                continue;
            };
            let group = choose(run, first, decoder, kind, engines);
            let waits = group.images.len() < engines.enough && !group.is_full;
            if waits && self.more_to_decode(run, first, budget) {
                return None;
            }
            if group.is_worth_it(engines) {
                return Some(group);
            }
        }
        None
    }

    /// Whether any image is on its way to decoders. Reads stop at the first that does not fit.
    fn more_on_the_way(&self, run: &Run, budget: &Budget) -> bool {
        let next = run.batches.iter().position(|batch| !batch.unread.is_empty());
        run.batches.iter().any(Assembly::is_coming)
            || next.is_some_and(|next| self.more_to_decode(run, next, budget))
    }

    /// Whether a submit to engines may be about to start; true more often than it is.
    pub(crate) fn engines_have_work(&self, backends: &Backends, budget: &Budget) -> bool {
        let Some(run) = &self.run else { return false };
        let waiting = waiting(run);
        let decoders = backends.engines.iter().zip(&self.submits);
        let is_idle = |(engines, submits): (&Option<Engines>, &usize)| {
            engines.is_some_and(|engines| *submits < engines.submits)
        };
        let Some(first) = run.batches.iter().position(|batch| batch.for_engines.images > 0) else {
            return false;
        };
        decoders.into_iter().any(is_idle)
            && (waiting.weight >= SUBMIT / 4 || !self.more_to_decode(run, first, budget))
    }

    /// Whether a thread had better decode an image than wait until engines do.
    pub(crate) fn is_for_threads(
        &self,
        run: &Run,
        number: usize,
        task: &DecodeTask,
        backends: &Backends,
        budget: &Budget,
    ) -> bool {
        let Some(thread) = task.ways.thread else { return false };
        if task.ways.engines.is_empty() {
            return true;
        }
        let waiting = waiting(run);
        if waiting.weight > SUBMIT * task.ways.engines.len() as u64 {
            return true;
        }
        if self.more_on_the_way(run, budget) {
            return false;
        }
        let engines = || task.ways.engines.iter();
        let busy = engines().map(|way| self.under_way[way.decoder]).min().unwrap_or(0);
        busy.saturating_add(waiting.cost) > thread.cost
            || !engines().any(|way| {
                backends.engines[way.decoder].is_some_and(|engines| {
                    choose(run, number, way.decoder, way.kind, &engines).is_worth_it(&engines)
                })
            })
    }
}

/// All images that wait and may go to engines.
fn waiting(run: &Run) -> ForEngines {
    run.batches.iter().fold(ForEngines::default(), |sum, batch| sum + batch.for_engines)
}
