//! One batch in flight: where each of its samples is, and the work that waits.
//!
//! A sample moves through `unread -> reading -> prepare -> decode -> render`; each field of it
//! decodes and renders on its own. When nothing of it is under way any more it is settled: its
//! slots become final, or another sample takes its place and starts over.

use crate::budget::Permit;
use crate::feed::Feed;
use crate::route::Ways;
use crate::{Batch, Error, Failure, OnError};
use forebay_core::order::{BatchTickets, Ticket};
use forebay_core::ports::{Fault, Pixels, Slot, Token};
use forebay_core::{Bytes, ImageMeta, ImagePlan, Mixing, Record};
use forebay_slab::{SealedSlab, Slab};
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Add, Sub};
use std::sync::Arc;

/// What the engine knows about a field, from the source's schema and the planner's specs.
#[derive(Debug)]
pub(crate) struct FieldInfo {
    pub(crate) path: String,
    /// Its pixels are rendered into slots; other fields' elements come with the plan.
    pub(crate) rendered: bool,
    /// Images, which a batch's mixes are for.
    pub(crate) mixed: bool,
    pub(crate) ragged: bool,
    /// Bytes of one sample, or of one row.
    pub(crate) item: usize,
    /// What a skipped sample holds.
    pub(crate) skip: Vec<u8>,
}

/// A record to probe and plan.
#[derive(Debug)]
pub(crate) struct Prepare {
    pub(crate) sample: usize,
    pub(crate) record: Record,
    /// The record's bytes, until its last image is rendered.
    pub(crate) held: Arc<Permit>,
}

/// An image to decode.
#[derive(Debug)]
pub(crate) struct DecodeTask {
    pub(crate) sample: usize,
    pub(crate) field: usize,
    pub(crate) ways: Ways,
    pub(crate) bytes: Bytes,
    pub(crate) meta: Arc<ImageMeta>,
    pub(crate) plan: Arc<ImagePlan>,
    pub(crate) held: Arc<Permit>,
}

/// Place of an image among those that wait: what engines would gain least by comes first, then
/// sample and field.
pub(crate) type Place = (u64, usize, usize);

/// What an image counts for until it is rendered.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) _record: Arc<Permit>,
    pub(crate) _pixels: Permit,
}

/// Pixels to render.
#[derive(Debug)]
pub(crate) struct RenderTask {
    pub(crate) sample: usize,
    pub(crate) field: usize,
    pub(crate) pixels: Pixels,
    pub(crate) meta: Arc<ImageMeta>,
    pub(crate) plan: Arc<ImagePlan>,
    pub(crate) held: Held,
}

/// What became of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Open,
    Good,
    Skipped,
    Bad,
}

#[derive(Debug)]
struct Attempt {
    index: u64,
    number: u16,
    token: Token,
    fault: Fault,
}

/// One slot of the batch and the sample that is to fill it.
#[derive(Debug)]
pub(crate) struct Sample {
    index: u64,
    attempt: u16,
    /// The source's request for it.
    pub(crate) token: Token,
    /// Bytes of its record, as far as the source told before reading.
    pub(crate) announced: Option<u64>,
    pub(crate) size: [i64; 2],
    /// By field; `None` while the renderer has it, and for fields that are not rendered.
    pub(crate) slots: Vec<Option<Box<dyn Slot>>>,
    /// Final elements by field, written once the images have succeeded.
    pub(crate) elements: Vec<(usize, Vec<u8>)>,
    /// Images under way.
    pub(crate) outstanding: usize,
    /// The first by field, so that the verdict does not depend on who fails first.
    fault: Option<(usize, Fault)>,
    attempts: Vec<Attempt>,
    fate: Fate,
}

impl Sample {
    pub(crate) fn index(&self) -> u64 {
        self.index
    }

    pub(crate) fn fail(&mut self, field: usize, fault: Fault) {
        if self.fault.as_ref().is_none_or(|(first, _)| field < *first) {
            self.fault = Some((field, fault));
        }
    }
}

/// A settled sample's last writes, done without holding the lock.
#[derive(Debug)]
pub(crate) struct Settled {
    slab: Arc<Slab>,
    sample: usize,
    slots: Vec<Option<Box<dyn Slot>>>,
    fill: Fill,
}

#[derive(Debug)]
enum Fill {
    Elements(Vec<(usize, Vec<u8>)>),
    Skip,
    Nothing,
}

impl Settled {
    /// Writes, and returns the slots.
    pub(crate) fn write(self, fields: &[FieldInfo]) -> Result<(), forebay_slab::Error> {
        match &self.fill {
            Fill::Elements(elements) => {
                for (field, value) in elements {
                    self.slab.put(*field, self.sample, value)?;
                }
            }
            Fill::Skip => {
                self.slab.reserve()?;
                for (field, info) in fields.iter().enumerate().filter(|(_, info)| !info.rendered) {
                    self.slab.put(field, self.sample, &info.skip)?;
                }
                for mut slot in self.slots.into_iter().flatten() {
                    forebay_slab::zero(&mut *slot)?;
                }
            }
            Fill::Nothing => {}
        }
        Ok(())
    }
}

/// How far a batch's images are with being mixed with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MixState {
    /// Nothing is left to do.
    Done,
    /// As soon as no sample is open.
    Waiting,
    /// The renderer is at it.
    Running,
}

/// A field's slots to mix, in the samples' order.
pub(crate) type FieldSlots = (usize, Vec<Box<dyn Slot>>);

/// A batch to hand out, and what it adds to the counters.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) batch: Box<Batch>,
    pub(crate) replaced: u64,
    pub(crate) skipped: u64,
}

/// Images that wait and may go to engines, in sum.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ForEngines {
    pub(crate) images: u64,
    /// See [`Ways::weight`].
    pub(crate) weight: u64,
    /// See [`Ways::engine_cost`].
    pub(crate) cost: u64,
}

impl ForEngines {
    fn of(ways: &Ways) -> Self {
        let cost = ways.engine_cost();
        Self { images: cost.is_some().into(), weight: ways.weight, cost: cost.unwrap_or(0) }
    }
}

impl Add for ForEngines {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            images: self.images + more.images,
            weight: self.weight + more.weight,
            cost: self.cost.saturating_add(more.cost),
        }
    }
}

impl Sub for ForEngines {
    type Output = Self;

    fn sub(self, less: Self) -> Self {
        Self {
            images: self.images - less.images,
            weight: self.weight - less.weight,
            cost: self.cost.saturating_sub(less.cost),
        }
    }
}

/// One batch in flight.
#[derive(Debug)]
pub(crate) struct Assembly {
    pub(crate) tickets: Vec<Ticket>,
    pub(crate) next_position: u64,
    pub(crate) samples: Vec<Sample>,
    /// Samples that are not final.
    pub(crate) open: usize,
    pub(crate) unread: VecDeque<usize>,
    pub(crate) reading: usize,
    pub(crate) prepare: VecDeque<Prepare>,
    pub(crate) preparing: usize,
    pub(crate) decode: BTreeMap<Place, DecodeTask>,
    /// What engines may have of it.
    pub(crate) for_engines: ForEngines,
    pub(crate) decoding: usize,
    pub(crate) render: VecDeque<RenderTask>,
    pub(crate) rendering: usize,
    /// What is done to its images together.
    mixes: Arc<[Mixing]>,
    mixing: MixState,
    slab: Arc<Slab>,
    /// The slab's bytes, until the batch is handed out.
    pub(crate) permit: Option<Permit>,
}

impl Assembly {
    pub(crate) fn new(
        tickets: BatchTickets,
        slab: Slab,
        fields: &[FieldInfo],
        mixes: Vec<Mixing>,
    ) -> Result<Self, forebay_slab::Error> {
        let BatchTickets { tickets, next_position } = tickets;
        let slot = |(field, info): (usize, &FieldInfo), number| {
            let slot = info.rendered.then(|| slab.slot(field, number)).transpose()?;
            Ok(slot.map(|slot| Box::new(slot) as Box<dyn Slot>))
        };
        let sample = |(number, ticket): (usize, &Ticket)| {
            let slots = fields.iter().enumerate().map(|field| slot(field, number));
            Ok(Sample {
                index: ticket.index,
                attempt: 0,
                token: 0,
                announced: None,
                size: [0, 0],
                slots: slots.collect::<Result<_, forebay_slab::Error>>()?,
                elements: Vec::new(),
                outstanding: 0,
                fault: None,
                attempts: Vec::new(),
                fate: Fate::Open,
            })
        };
        let samples =
            tickets.iter().enumerate().map(sample).collect::<Result<_, forebay_slab::Error>>()?;
        Ok(Self {
            open: tickets.len(),
            unread: (0..tickets.len()).collect(),
            tickets,
            next_position,
            samples,
            reading: 0,
            prepare: VecDeque::new(),
            preparing: 0,
            decode: BTreeMap::new(),
            for_engines: ForEngines::default(),
            decoding: 0,
            render: VecDeque::new(),
            rendering: 0,
            mixing: if mixes.is_empty() { MixState::Done } else { MixState::Waiting },
            mixes: mixes.into(),
            slab: Arc::new(slab),
            permit: None,
        })
    }

    /// The memory; whoever has it lets go before the last slot returns.
    pub(crate) fn slab(&self) -> Arc<Slab> {
        Arc::clone(&self.slab)
    }

    /// Whether nothing is missing.
    pub(crate) fn done(&self) -> bool {
        self.open == 0 && self.mixing == MixState::Done
    }

    /// One more sample is final.
    pub(crate) fn close_one(&mut self) {
        self.open -= 1;
        // Nobody gets a batch with a bad sample.
        if self.open == 0 && self.samples.iter().any(|sample| sample.fate == Fate::Bad) {
            self.mixing = MixState::Done;
        }
    }

    /// Whether its images can be mixed now.
    pub(crate) fn can_mix(&self) -> bool {
        self.open == 0 && self.mixing == MixState::Waiting
    }

    /// The slots of good samples to mix, if that can be done now.
    pub(crate) fn start_mixing(
        &mut self,
        fields: &[FieldInfo],
    ) -> Option<(Vec<FieldSlots>, Arc<[Mixing]>)> {
        if !self.can_mix() {
            return None;
        }
        self.mixing = MixState::Running;
        let mixed = fields.iter().enumerate().filter(|(_, info)| info.mixed);
        let mut mixed: Vec<FieldSlots> = mixed.map(|(field, _)| (field, Vec::new())).collect();
        for sample in &mut self.samples {
            let mut slots = std::mem::take(&mut sample.slots);
            for (field, taken) in &mut mixed {
                taken.extend(slots.get_mut(*field).and_then(Option::take));
            }
        }
        Some((mixed, Arc::clone(&self.mixes)))
    }

    /// Whether mixing is all that is missing.
    pub(crate) fn only_mixes(&self) -> bool {
        self.open == 0 && self.mixing != MixState::Done
    }

    /// Its images are mixed.
    pub(crate) fn mixed(&mut self) {
        self.mixing = MixState::Done;
    }

    /// Whether a single read is all that is under way.
    pub(crate) fn alone_but_for_one_read(&self) -> bool {
        self.reading <= 1
            && self.preparing + self.prepare.len() == 0
            && self.decoding + self.rendering + self.render.len() + self.decode.len() == 0
    }

    /// Whether records of it are asked for, or wait to be planned.
    pub(crate) fn is_coming(&self) -> bool {
        self.reading + self.preparing + self.prepare.len() > 0
    }

    /// An image to decode.
    pub(crate) fn push_decode(&mut self, task: DecodeTask) {
        self.for_engines = self.for_engines + ForEngines::of(&task.ways);
        self.decode.insert((task.ways.advantage(), task.sample, task.field), task);
    }

    /// Takes an image that waits.
    pub(crate) fn take_decode(&mut self, place: Place) -> DecodeTask {
        let task = self.decode.remove(&place).expect("it was just seen");
        self.for_engines = self.for_engines - ForEngines::of(&task.ways);
        task
    }

    /// Decides the fate of a sample of which nothing is under way any more; `None` if another
    /// sample takes its slot.
    pub(crate) fn settle(
        &mut self,
        number: usize,
        policy: OnError,
        feed: &Feed,
    ) -> Option<Settled> {
        let sample = &mut self.samples[number];
        let elements = std::mem::take(&mut sample.elements);
        let fill = if let Some((_, fault)) = sample.fault.take() {
            sample.size = [0, 0];
            sample.attempts.push(Attempt {
                index: sample.index,
                number: sample.attempt,
                token: sample.token,
                fault,
            });
            sample.announced = None;
            let position = self.tickets[number].position;
            if policy == OnError::Replace
                && sample.attempt < OnError::ATTEMPTS
                && let Some(index) = feed.replacement(position, sample.attempt + 1)
            {
                sample.attempt += 1;
                sample.index = index;
                self.unread.push_front(number);
                return None;
            }
            if policy == OnError::Skip {
                sample.fate = Fate::Skipped;
                Fill::Skip
            } else {
                sample.fate = Fate::Bad;
                Fill::Nothing
            }
        } else {
            sample.fate = Fate::Good;
            Fill::Elements(elements)
        };
        let is_mixed = sample.fate == Fate::Good && self.mixing == MixState::Waiting;
        let slots = if is_mixed { Vec::new() } else { std::mem::take(&mut sample.slots) };
        Some(Settled { slab: Arc::clone(&self.slab), sample: number, slots, fill })
    }

    /// Turns a batch that is done into what is handed out; `key` names samples.
    pub(crate) fn finish(self, epoch: u64, key: impl Fn(u64) -> String) -> Result<Finished, Error> {
        let mut failures = Vec::new();
        let mut raise = None;
        for (sample, ticket) in self.samples.iter().zip(&self.tickets) {
            if sample.fate == Fate::Bad {
                raise = raise.or(Some(failures.len()));
            }
            failures.extend(sample.attempts.iter().map(|bad| Failure {
                position: ticket.position,
                index: bad.index,
                key: key(bad.index),
                stage: bad.fault.stage,
                reason: bad.fault.reason.clone(),
                attempt: bad.number,
                token: bad.token,
            }));
        }
        let slab = match raise {
            Some(_) => None,
            None => Some(seal(self.slab)?),
        };
        let good = |sample: &Sample| sample.fate == Fate::Good;
        let count = |is: &dyn Fn(&Sample) -> bool| {
            self.samples.iter().filter(|sample| is(sample)).count() as u64
        };
        Ok(Finished {
            replaced: count(&|sample| good(sample) && sample.attempt > 0),
            skipped: count(&|sample| sample.fate == Fate::Skipped),
            batch: Box::new(Batch {
                epoch,
                indices: self.samples.iter().map(Sample::index).collect(),
                tokens: self.samples.iter().map(|sample| sample.token).collect(),
                positions: self.tickets.iter().map(|ticket| ticket.position).collect(),
                valid: self
                    .samples
                    .iter()
                    .zip(&self.tickets)
                    .map(|(sample, ticket)| good(sample) && !ticket.pad)
                    .collect(),
                sizes: self.samples.iter().map(|sample| sample.size).collect(),
                failures,
                raise,
                slab,
                next_position: self.next_position,
                partners: if self.mixes.is_empty() { Vec::new() } else { partners(&self.samples) },
                mixes: self.mixes,
            }),
        })
    }
}

/// By sample the one whose image is mixed into it; `None` for those without an image.
fn partners(samples: &[Sample]) -> Vec<Option<usize>> {
    let is_good = |number: &usize| samples[*number].fate == Fate::Good;
    let mut before = (0..samples.len()).rev().find(is_good);
    let partner = |number| is_good(&number).then(|| before.replace(number)).flatten();
    (0..samples.len()).map(partner).collect()
}

fn seal(slab: Arc<Slab>) -> Result<Arc<SealedSlab>, Error> {
    let slab = Arc::into_inner(slab).ok_or_else(|| Error::Internal {
        during: "sealing a batch",
        reason: "its slab is still being written".to_owned(),
    })?;
    Ok(slab.seal()?)
}
