//! Which work is done next: what is under way, and the rules by which it starts.
//!
//! **Rules**
//! - Earlier batches come first; within a batch later stages come first, which frees memory.
//! - Where decoders have engines, these come before decoding on threads, and so does preparing, of
//!   any batch: it takes little, and tells what engines may get (`groups`).
//! - A batch whose images are all there is mixed before anything else: then it can be handed out.
//! - A renderer that likes groups waits while more of the batch is on the way to it, and no longer:
//!   what the budget holds back is not on the way.
//! - Work that takes memory starts if it fits the budget. If nothing else of the batch that is
//!   due can free memory, one piece of its work starts regardless (MEM-1).

use crate::assembly::{Assembly, DecodeTask, FieldInfo, FieldSlots, Held, Prepare, RenderTask};
use crate::budget::{Budget, Permit};
use crate::groups::{Group, has_engine_work};
use crate::prepare::Incoming;
use crate::route::Way;
use crate::run::Run;
use crate::shared::{At, Decoding, Reading, Rendering, State};
use forebay_core::ports::{DecodeJob, Engines, RenderJob, Request, Stop, Token};
use forebay_core::{Bytes, Mixing};
use forebay_slab::Slab;
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
    Render { batch: u64, slab: Arc<Slab>, jobs: Vec<RenderJob> },
    /// Mix a batch's images with each other.
    Mix { run: u64, batch: u64, fields: Vec<FieldSlots>, mixes: Arc<[Mixing]> },
}

/// How backends take their work.
#[derive(Debug)]
pub(crate) struct Backends {
    /// By decoder.
    pub(crate) engines: Vec<Option<Engines>>,
    /// Jobs that the renderer likes at once.
    pub(crate) renderer: usize,
}

impl Backends {
    /// Threads that engines keep busy, of `workers` in total. One is left for what engines do not
    /// do.
    pub(crate) fn busy_threads(&self, workers: usize) -> usize {
        self.submits(true).min(workers.saturating_sub(1))
    }

    /// Threads, beside all workers, that wait for engines.
    pub(crate) fn waiting_threads(&self) -> usize {
        self.submits(false)
    }

    fn submits(&self, busy: bool) -> usize {
        let engines = self.engines.iter().flatten().filter(|engines| engines.busy == busy);
        engines.map(|engines| engines.submits).sum()
    }

    pub(crate) fn have_engines(&self) -> bool {
        self.engines.iter().any(Option::is_some)
    }
}

/// What a thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Everything, as there is no other worker.
    All,
    /// Everything but submits to engines.
    Worker,
    /// Submits to engines that keep it busy and, while these cannot begin, what takes little time.
    Engine,
    /// Submits to engines that let it sleep, and nothing else.
    Waiter,
}

impl State {
    /// The next work for a thread.
    pub(crate) fn pick(
        &mut self,
        role: Role,
        fields: &[FieldInfo],
        backends: &Backends,
        budget: &Arc<Budget>,
    ) -> Option<Job> {
        let mut run = self.run.take()?;
        let job = if role != Role::Waiter && run.batches.iter().any(Assembly::can_mix) {
            pick_mix(&mut run, fields)
        } else if backends.have_engines() {
            self.pick_beside_engines(&mut run, role, backends, budget)
        } else {
            (0..run.batches.len()).find_map(|number| {
                self.pick_render(&mut run, number, backends, budget)
                    .or_else(|| self.pick_decode(&mut run, number, backends, budget))
                    .or_else(|| pick_prepare(&mut run, number))
            })
        };
        let job = job.or_else(|| self.pick_blocked_renders(&mut run, backends, budget));
        self.run = Some(run);
        job
    }

    fn pick_beside_engines(
        &mut self,
        run: &mut Run,
        role: Role,
        backends: &Backends,
        budget: &Arc<Budget>,
    ) -> Option<Job> {
        let mut numbers = 0..run.batches.len();
        if role != Role::Worker
            && let Some(job) = self.pick_engine_decodes(run, role, backends, budget)
        {
            return Some(job);
        }
        if role == Role::Waiter {
            return None;
        }
        // A batch's renders take as long as some images in an engine, which would wait.
        let alone = backends.waiting_threads() == 0;
        let waits = alone && role == Role::Engine && run.batches.iter().any(has_engine_work);
        let mut job = None;
        if !waits {
            job = numbers.clone().find_map(|at| self.pick_render(run, at, backends, budget));
        }
        job = job.or_else(|| numbers.clone().find_map(|number| pick_prepare(run, number)));
        if waits {
            return job;
        }
        job.or_else(|| numbers.find_map(|at| self.pick_decode(run, at, backends, budget)))
    }

    /// A group of renders, or the last ones of the batch.
    fn pick_render(
        &mut self,
        run: &mut Run,
        number: usize,
        backends: &Backends,
        budget: &Budget,
    ) -> Option<Job> {
        let ready = self.renders_ready(run, number, backends, budget);
        ready.then(|| self.start_renders(run, number, backends.renderer))?
    }

    fn renders_ready(
        &self,
        run: &Run,
        number: usize,
        backends: &Backends,
        budget: &Budget,
    ) -> bool {
        let batch = &run.batches[number];
        let is_last = || {
            let under_way = batch.decode.len() + batch.decoding;
            under_way == 0 && !self.more_to_decode(run, number, budget)
        };
        !batch.render.is_empty() && (batch.render.len() >= backends.renderer || is_last())
    }

    /// Renders of the batch that is due, if what they hold is what decoding waits for.
    fn pick_blocked_renders(
        &mut self,
        run: &mut Run,
        backends: &Backends,
        budget: &Budget,
    ) -> Option<Job> {
        let blocked = self.renders_blocked(run, budget);
        blocked.then(|| self.start_renders(run, 0, backends.renderer))?
    }

    fn renders_blocked(&self, run: &Run, budget: &Budget) -> bool {
        let Some(batch) = run.batches.front() else { return false };
        !batch.render.is_empty() && batch.decoding == 0 && !self.more_to_decode(run, 0, budget)
    }

    /// Whether a thread may find something to do; true more often than it does.
    pub(crate) fn threads_have_work(&self, backends: &Backends, budget: &Budget) -> bool {
        let Some(run) = &self.run else { return false };
        let has_work = |number: usize| {
            let batch = &run.batches[number];
            let first = batch.decode.first_key_value();
            !batch.prepare.is_empty()
                || batch.can_mix()
                || self.renders_ready(run, number, backends, budget)
                || first.is_some_and(|(_, task)| {
                    self.is_for_threads(run, number, task, backends, budget)
                })
        };
        (0..run.batches.len()).any(has_work) || self.renders_blocked(run, budget)
    }

    /// Whether images of the batch are on their way to decoders.
    pub(crate) fn more_to_decode(&self, run: &Run, number: usize, budget: &Budget) -> bool {
        let batch = &run.batches[number];
        let due = number == 0;
        batch.is_coming()
            || (!batch.unread.is_empty() && self.read_fits(batch, due, budget, run.spare(budget)))
    }

    /// One image for a thread.
    fn pick_decode(
        &mut self,
        run: &mut Run,
        number: usize,
        backends: &Backends,
        budget: &Arc<Budget>,
    ) -> Option<Job> {
        let (&place, task) = run.batches[number].decode.first_key_value()?;
        if !self.is_for_threads(run, number, task, backends, budget) {
            return None;
        }
        let way = task.ways.thread?;
        let batch = &mut run.batches[number];
        let permit = decode_permit(batch, way, number == 0, budget)?;
        let task = batch.take_decode(place);
        let at = run.at(number);
        let work = vec![self.start_decode(&mut run.batches[number], task, way, permit, at)];
        Some(self.start_decodes(way.decoder, work, &run.stop))
    }

    /// Images of one kind for engines that are idle.
    fn pick_engine_decodes(
        &mut self,
        run: &mut Run,
        role: Role,
        backends: &Backends,
        budget: &Arc<Budget>,
    ) -> Option<Job> {
        let decoders = backends.engines.iter().enumerate();
        for (decoder, engines) in decoders.filter_map(|(at, it)| Some((at, it.as_ref()?))) {
            let takes = match role {
                Role::All => true,
                Role::Worker => false,
                Role::Engine => engines.busy,
                Role::Waiter => !engines.busy,
            };
            if !takes || self.submits[decoder] >= engines.submits {
                continue;
            }
            if let Some(group) = self.engine_group(run, decoder, backends, budget) {
                return self.start_engine_decodes(run, decoder, &group, budget);
            }
        }
        None
    }

    fn start_engine_decodes(
        &mut self,
        run: &mut Run,
        decoder: usize,
        group: &Group,
        budget: &Arc<Budget>,
    ) -> Option<Job> {
        let mut work = Vec::new();
        for &(number, place) in &group.images {
            let batch = &mut run.batches[number];
            let way = batch.decode[&place].ways.engine(decoder).expect("chosen for it");
            let due = number == 0 && work.is_empty();
            let Some(permit) = decode_permit(batch, way, due, budget) else {
                break;
            };
            let task = batch.take_decode(place);
            let at = run.at(number);
            work.push(self.start_decode(&mut run.batches[number], task, way, permit, at));
        }
        (!work.is_empty()).then(|| self.start_decodes(decoder, work, &run.stop))
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

    fn start_decode(
        &mut self,
        batch: &mut Assembly,
        task: DecodeTask,
        way: Way,
        footprint: Permit,
        at: impl Fn(usize) -> At,
    ) -> (Token, Decoding, Bytes) {
        batch.decoding += 1;
        self.under_way[way.decoder] += way.cost;
        let decoding = Decoding {
            at: at(task.sample),
            field: task.field,
            bytes: task.bytes.len() as u64,
            meta: task.meta,
            plan: task.plan,
            held: Held { _record: task.held, _pixels: footprint },
            way,
            started: Instant::now(),
            share: 1,
        };
        (self.token(), decoding, task.bytes)
    }

    fn start_decodes(
        &mut self,
        decoder: usize,
        work: Vec<(Token, Decoding, Bytes)>,
        stop: &Stop,
    ) -> Job {
        self.submits[decoder] += 1;
        let share = work.len();
        let jobs = work.into_iter().map(|(token, decoding, bytes)| {
            let job = DecodeJob {
                token,
                bytes,
                meta: Arc::clone(&decoding.meta),
                region: decoding.plan.region,
                channels: decoding.plan.write.channels,
                stop: stop.clone(),
            };
            self.decodes.insert(token, Decoding { share, ..decoding });
            job
        });
        Job::Decode { decoder, jobs: jobs.collect() }
    }

    fn start_renders(&mut self, run: &mut Run, number: usize, group: usize) -> Option<Job> {
        let at = run.at(number);
        let batch = &mut run.batches[number];
        let share = batch.render.len().min(group);
        if share == 0 || self.short.is_some() {
            return None;
        }
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
                    stop: run.stop.clone(),
                }
            })
            .collect();
        Some(Job::Render { batch: run.first + number as u64, slab: batch.slab(), jobs })
    }
}

fn pick_mix(run: &mut Run, fields: &[FieldInfo]) -> Option<Job> {
    let mut batches = (run.first..).zip(&mut run.batches);
    let start =
        |(batch, assembly): (u64, &mut Assembly)| Some((batch, assembly.start_mixing(fields)?));
    let (batch, (fields, mixes)) = batches.find_map(start)?;
    Some(Job::Mix { run: run.id, batch, fields, mixes })
}

fn pick_prepare(run: &mut Run, number: usize) -> Option<Job> {
    let batch = &mut run.batches[number];
    let Prepare { sample, record, held } = batch.prepare.pop_front()?;
    batch.preparing += 1;
    let incoming = Incoming {
        sample,
        record,
        held,
        key: run.feed.key(),
        position: batch.tickets[sample].position,
        index: batch.samples[sample].index(),
    };
    Some(Job::Prepare { at: run.at(number)(sample), incoming })
}

/// Memory for decoding one image of the batch.
fn decode_permit(batch: &Assembly, way: Way, due: bool, budget: &Arc<Budget>) -> Option<Permit> {
    let nothing_frees = batch.decoding + batch.rendering + batch.render.len() == 0;
    budget.take(way.footprint, due && nothing_frees)
}
