//! Which work is done next: what is under way, and the rules by which it starts.
//!
//! **Rules**
//! - Earlier batches come first; within a batch later stages come first, which frees memory.
//! - Jobs for a backend that likes groups wait while more of their batch are on the way to it,
//!   and no longer: what the budget holds back is not on the way.
//! - Work that takes memory starts if it fits the budget. If nothing else of the batch that is
//!   due can free memory, one piece of its work starts regardless (MEM-1).

use crate::OnError;
use crate::assembly::{Assembly, DecodeTask, Held, Prepare, RenderTask, Settled};
use crate::budget::{Budget, Permit};
use crate::feed::Feed;
use crate::prepare::Incoming;
use crate::shared::{At, Decoding, Reading, Rendering, State};
use forebay_core::order::BatchTickets;
use forebay_core::ports::{DecodeJob, RenderJob, Request, Stop};
use forebay_slab::Slab;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// What a worker does in one go.
#[derive(Debug)]
pub(crate) enum Job {
    /// Probe and plan one record.
    Prepare { at: At, incoming: Incoming },
    /// Give images to a decoder.
    Decode { decoder: usize, jobs: Vec<DecodeJob> },
    /// Give pixels to the renderer.
    Render { slab: Arc<Slab>, jobs: Vec<RenderJob> },
}

/// How many jobs each backend likes at once.
#[derive(Debug)]
pub(crate) struct Preferred {
    pub(crate) decoders: Vec<Lanes>,
    /// Those with engines of their own come first: they work while the threads do.
    pub(crate) order: Vec<usize>,
    pub(crate) renderer: usize,
}

/// What a decoder takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes {
    /// Jobs in one submit.
    pub(crate) group: usize,
    /// Submits at once.
    pub(crate) submits: usize,
}

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
    fn spare(&self, budget: &Budget) -> u64 {
        let permits = self.batches.iter().filter_map(|batch| batch.permit.as_ref());
        budget.limit().saturating_sub(permits.map(Permit::bytes).sum()) / 4
    }

    fn number(&self, at: At) -> Option<usize> {
        let number = at.batch.checked_sub(self.first)?;
        usize::try_from(number).ok().filter(|_| at.run == self.id)
    }
}

impl State {
    /// The next work for a worker.
    pub(crate) fn pick(&mut self, preferred: &Preferred, budget: &Arc<Budget>) -> Option<Job> {
        let mut run = self.run.take()?;
        let job = (0..run.batches.len())
            .find_map(|number| self.pick_in(&mut run, number, preferred, budget));
        self.run = Some(run);
        job
    }

    fn pick_in(
        &mut self,
        run: &mut Run,
        number: usize,
        preferred: &Preferred,
        budget: &Arc<Budget>,
    ) -> Option<Job> {
        let due = number == 0;
        let spare = run.spare(budget);
        let read_fits = self.read_fits(&run.batches[number], due, budget, spare);
        let batch = &mut run.batches[number];
        let at = |sample| At { run: run.id, batch: run.first + number as u64, sample };
        if batch.render.len() >= preferred.renderer {
            return Some(self.start_renders(batch, preferred.renderer, at, &run.stop));
        }
        let more_to_decode = batch.reading + batch.preparing + batch.prepare.len() > 0
            || (!batch.unread.is_empty() && read_fits);
        for &decoder in &preferred.order {
            let Lanes { group, submits } = preferred.decoders[decoder];
            let waits = batch.decode[decoder].len() < group && more_to_decode;
            if waits || self.submits[decoder] >= submits {
                continue;
            }
            let tasks = take_decodes(batch, decoder, group, due, budget);
            if !tasks.is_empty() {
                return Some(self.start_decodes(batch, decoder, tasks, at, &run.stop));
            }
        }
        if let Some(prepare) = batch.prepare.pop_front() {
            batch.preparing += 1;
            let Prepare { sample, record, held } = prepare;
            let incoming = Incoming {
                sample,
                record,
                held,
                key: run.feed.key(),
                position: batch.tickets[sample].position,
            };
            return Some(Job::Prepare { at: at(sample), incoming });
        }
        let more_to_render = more_to_decode || batch.decoding > 0;
        if !batch.render.is_empty() && !more_to_render {
            return Some(self.start_renders(batch, preferred.renderer, at, &run.stop));
        }
        None
    }

    /// Whether any work for workers waits, if only for more of its kind.
    pub(crate) fn queued(&self) -> bool {
        self.run.iter().flat_map(|run| &run.batches).any(Assembly::queued)
    }

    /// Samples that were not asked for yet.
    pub(crate) fn unread(&self) -> usize {
        let batches = self.run.iter().flat_map(|run| &run.batches);
        batches.map(|batch| batch.unread.len()).sum()
    }

    /// Samples that are asked for or wait for a worker.
    pub(crate) fn ahead(&self) -> usize {
        self.run.as_ref().map_or(0, |run| self.ahead_in(run))
    }

    fn ahead_in(&self, run: &Run) -> usize {
        self.reads.len() + run.batches.iter().map(|batch| batch.prepare.len()).sum::<usize>()
    }

    /// Up to `most` samples to ask the source for, as long as no more than `ahead` are asked for
    /// or wait for a worker.
    pub(crate) fn pick_reads(
        &mut self,
        most: usize,
        ahead: usize,
        budget: &Arc<Budget>,
    ) -> Vec<Request> {
        let mut requests = Vec::new();
        let Some(mut run) = self.run.take() else {
            return requests;
        };
        let spare = run.spare(budget);
        let most = most.min(ahead.saturating_sub(self.ahead_in(&run)));
        'batches: for number in 0..run.batches.len() {
            while requests.len() < most && !run.batches[number].unread.is_empty() {
                if !self.read_fits(&run.batches[number], number == 0, budget, spare) {
                    break 'batches;
                }
                let batch = &mut run.batches[number];
                let Some(sample) = batch.unread.pop_front() else {
                    continue;
                };
                batch.reading += 1;
                let token = self.token();
                batch.samples[sample].token = token;
                let at = At { run: run.id, batch: run.first + number as u64, sample };
                let expected = batch.samples[sample].announced.unwrap_or(self.largest_record);
                let permit = budget.take(expected, true).expect("forced permits are always given");
                let reading = Reading { at, permit, started: Instant::now(), share: 1 };
                self.reads.insert(token, reading);
                requests.push(Request { token, index: batch.samples[sample].index() });
            }
        }
        self.run = Some(run);
        for request in &requests {
            if let Some(reading) = self.reads.get_mut(&request.token) {
                reading.share = requests.len();
            }
        }
        requests
    }

    /// Whether the batch's next read may start. A record's size is known only once it is there:
    /// the largest so far stands for it, unless the source has announced it; as long as few have
    /// been seen few are asked for.
    fn read_fits(&self, batch: &Assembly, due: bool, budget: &Budget, spare: u64) -> bool {
        let alone = batch.reading == 0 && batch.alone_but_for_one_read();
        let known = (self.reads.len() as u64) < self.records_seen + 1;
        let announced = batch.unread.front().and_then(|&next| batch.samples[next].announced);
        let expected = announced.unwrap_or(self.largest_record);
        (due && alone) || (known && budget.fits(expected.saturating_add(spare)))
    }

    fn start_decodes(
        &mut self,
        batch: &mut Assembly,
        decoder: usize,
        tasks: Vec<(DecodeTask, Permit)>,
        at: impl Fn(usize) -> At,
        stop: &Stop,
    ) -> Job {
        batch.decoding += tasks.len();
        self.submits[decoder] += 1;
        let share = tasks.len();
        let started = Instant::now();
        let jobs = tasks
            .into_iter()
            .map(|(task, footprint)| {
                let token = self.token();
                let region = task.plan.region;
                let decoding = Decoding {
                    at: at(task.sample),
                    field: task.field,
                    bytes: task.bytes.len() as u64,
                    meta: Arc::clone(&task.meta),
                    plan: Arc::clone(&task.plan),
                    held: Held { _record: task.held, _pixels: footprint },
                    route: task.route,
                    started,
                    share,
                };
                self.decodes.insert(token, decoding);
                DecodeJob {
                    token,
                    bytes: task.bytes,
                    meta: task.meta,
                    region,
                    channels: usize::from(task.plan.write.channels),
                    stop: stop.clone(),
                }
            })
            .collect();
        Job::Decode { decoder, jobs }
    }

    fn start_renders(
        &mut self,
        batch: &mut Assembly,
        group: usize,
        at: impl Fn(usize) -> At,
        stop: &Stop,
    ) -> Job {
        let share = batch.render.len().min(group);
        batch.rendering += share;
        let started = Instant::now();
        let tasks: Vec<RenderTask> = batch.render.drain(..share).collect();
        let jobs = tasks
            .into_iter()
            .map(|task| {
                let slot = batch.samples[task.sample].slots[task.field]
                    .take()
                    .expect("a field is rendered by one job at a time");
                let token = self.token();
                let rendering = Rendering {
                    at: at(task.sample),
                    field: task.field,
                    held: task.held,
                    started,
                    share,
                };
                self.renders.insert(token, rendering);
                RenderJob {
                    token,
                    pixels: task.pixels,
                    meta: task.meta,
                    plan: task.plan,
                    slot,
                    stop: stop.clone(),
                }
            })
            .collect();
        Job::Render { slab: batch.slab(), jobs }
    }
}

/// Decodes of one group that fit the budget, each with its permit.
fn take_decodes(
    batch: &mut Assembly,
    decoder: usize,
    group: usize,
    due: bool,
    budget: &Arc<Budget>,
) -> Vec<(DecodeTask, Permit)> {
    let mut tasks = Vec::new();
    while tasks.len() < group
        && let Some(task) = batch.decode[decoder].front()
    {
        let nothing_frees = batch.decoding + batch.rendering + batch.render.len() == 0;
        let forced = due && tasks.is_empty() && nothing_frees;
        let Some(permit) = budget.take(task.footprint, forced) else {
            break;
        };
        tasks.extend(batch.decode[decoder].pop_front().map(|task| (task, permit)));
    }
    tasks
}
