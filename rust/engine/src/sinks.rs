//! What came of the work: records, pixels and slots on their way back from the backends.
//!
//! Completions come in any order, on any thread, and perhaps long after anyone wanted them: a
//! token that is not known any more, or names a slot of an older run, is dropped.

use crate::Error;
use crate::assembly::{Assembly, Prepare, RenderTask, Settled};
use crate::prepare::{Prepared, Times};
use crate::shared::{At, Rendering, Shared, State};
use forebay_core::ports::{
    DecodeSink, Decoded, Fault, RecordSink, RenderJob, RenderSink, Rendered, Token,
};
use forebay_core::{ErrorKind, Record};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

impl RecordSink for Shared {
    fn admit(&self, token: Token, bytes: u64) -> bool {
        let mut state = self.lock();
        let Some(reading) = state.reads.get(&token) else {
            return false;
        };
        // Most records are no larger than what was set aside for them.
        if bytes <= reading.permit.bytes() {
            return true;
        }
        let (at, more) = (reading.at, bytes - reading.permit.bytes());
        let room = self.budget.fits(more);
        let run = state.run.as_mut();
        let batch = run.and_then(|run| Some((at.batch == run.first, run.batch(at)?)));
        let Some((due, batch)) = batch else {
            // Nobody wants it any more.
            state.reads.remove(&token);
            return false;
        };
        batch.samples[at.sample].announced = Some(bytes);
        if room || (due && batch.alone_but_for_one_read()) {
            if let Some(reading) = state.reads.get_mut(&token) {
                reading.permit.resize(bytes);
            }
            return true;
        }
        batch.reading -= 1;
        batch.unread.push_front(at.sample);
        state.reads.remove(&token);
        // What waited for this image does no longer.
        self.wake(&state);
        false
    }

    fn deliver(&self, token: Token, record: Result<Record, Fault>) {
        let mut state = self.lock();
        let Some(mut reading) = state.reads.remove(&token) else {
            return;
        };
        let cost = record.as_ref().map_or(0, record_cost);
        reading.permit.resize(cost);
        state.largest_record = state.largest_record.max(cost);
        state.records_seen += 1;
        let time = shared_time(reading.started, reading.share);
        state.stats.read.add(cost, time);
        let settled = self.advance(&mut state, reading.at, |batch| {
            batch.reading -= 1;
            let sample = reading.at.sample;
            match record {
                Ok(record) => {
                    batch.prepare.push_back(Prepare {
                        sample,
                        record,
                        held: Arc::new(reading.permit),
                    });
                    batch.samples[sample].outstanding += 1;
                }
                Err(fault) => batch.samples[sample].fail(0, fault),
            }
        });
        self.go_on(state, settled);
    }
}

impl DecodeSink for Shared {
    fn decoded(&self, done: Vec<Decoded>) {
        // Dropped without the lock.
        let mut unwanted = Vec::new();
        let mut settled = Vec::new();
        let mut state = self.lock();
        for Decoded { token, pixels } in done {
            let Some(decoding) = state.decodes.remove(&token) else {
                unwanted.push(pixels);
                continue;
            };
            let time = shared_time(decoding.started, decoding.share);
            state.stats.decode.add(decoding.bytes, time);
            state.decoders[decoding.way.decoder].add(decoding.bytes, time);
            state.under_way[decoding.way.decoder] -= decoding.way.cost;
            settled.extend(self.advance(&mut state, decoding.at, |batch| {
                batch.decoding -= 1;
                let sample = decoding.at.sample;
                match pixels {
                    Ok(pixels) => batch.render.push_back(RenderTask {
                        sample,
                        field: decoding.field,
                        pixels,
                        meta: decoding.meta,
                        plan: decoding.plan,
                        held: decoding.held,
                    }),
                    Err(fault) => {
                        batch.samples[sample].outstanding -= 1;
                        batch.samples[sample].fail(decoding.field, fault);
                    }
                }
            }));
        }
        self.go_on(state, settled);
    }
}

impl RenderSink for Shared {
    fn rendered(&self, done: Vec<Rendered>) {
        let mut unwanted = Vec::new();
        let mut settled = Vec::new();
        let mut state = self.lock();
        for Rendered { token, slot, outcome } in done {
            let Some(rendering) = state.renders.remove(&token) else {
                unwanted.push(slot);
                continue;
            };
            let time = shared_time(rendering.started, rendering.share);
            state.stats.render.add(self.fields[rendering.field].item as u64, time);
            if let Ok(report) = &outcome {
                state.stats.passes += u64::from(report.passes);
                state.stats.intermediate_bytes += report.intermediate_bytes;
                state.stats.warnings += u64::from(report.warnings);
            }
            let held = rendering.held;
            settled.extend(self.advance(&mut state, rendering.at, |batch| {
                batch.rendering -= 1;
                drop(held);
                let sample = &mut batch.samples[rendering.at.sample];
                sample.slots[rendering.field] = Some(slot);
                sample.outstanding -= 1;
                if let Err(fault) = outcome {
                    sample.fail(rendering.field, fault);
                }
            }));
        }
        self.go_on(state, settled);
    }

    fn postponed(&self, jobs: Vec<RenderJob>, reason: String) {
        let mut unwanted = Vec::new();
        let mut state = self.lock();
        let current = state.run.as_ref().map(|run| run.id);
        let mut is_current = false;
        for job in jobs {
            let Some(Rendering { at, field, held, .. }) = state.renders.remove(&job.token) else {
                unwanted.push(job);
                continue;
            };
            is_current |= Some(at.run) == current;
            let RenderJob { pixels, meta, plan, slot, .. } = job;
            self.advance(&mut state, at, |batch| {
                batch.rendering -= 1;
                let sample = at.sample;
                batch.samples[sample].slots[field] = Some(slot);
                batch.render.push_back(RenderTask { sample, field, pixels, meta, plan, held });
            });
        }
        if let Some(run) = state.run.as_mut().filter(|_| is_current) {
            run.depth = run.batches.len().saturating_sub(1).max(1);
            state.short = Some(Error::Backend { kind: ErrorKind::DeviceMemory, reason });
        }
        self.ready.notify_all();
    }

    fn failed(&self, kind: ErrorKind, reason: String) {
        self.fail(Error::Backend { kind, reason });
    }
}

impl Shared {
    /// Takes what a worker made of a record.
    pub(crate) fn prepared(&self, at: At, result: Result<Prepared, Fault>, times: &Times) {
        let mut state = self.lock();
        state.stats.probe.merge(&times.probe);
        state.stats.plan.merge(&times.plan);
        let settled = self.advance(&mut state, at, |batch| {
            batch.preparing -= 1;
            let sample = &mut batch.samples[at.sample];
            sample.outstanding -= 1;
            match result {
                Ok(prepared) => {
                    sample.size = prepared.size;
                    sample.elements = prepared.elements;
                    sample.outstanding += prepared.images.len();
                    prepared.images.into_iter().for_each(|task| batch.push_decode(task));
                }
                Err(fault) => sample.fail(0, fault),
            }
        });
        self.go_on(state, settled);
    }

    /// A batch's images are mixed with each other.
    pub(crate) fn mixed(&self, run: u64, batch: u64) {
        let mut state = self.lock();
        let at = At { run, batch, sample: 0 };
        if let Some(batch) = state.run.as_mut().and_then(|run| run.batch(at)) {
            batch.mixed();
        }
        self.wake(&state);
    }

    /// Applies `change` to the batch that `at` names, and settles the sample if nothing of it is
    /// under way any more; what `change` owns is dropped in any case.
    fn advance(
        &self,
        state: &mut State,
        at: At,
        change: impl FnOnce(&mut Assembly),
    ) -> Option<(At, Settled)> {
        let run = state.run.as_mut()?;
        let batch = run.batch(at)?;
        change(batch);
        if batch.samples[at.sample].outstanding > 0 {
            return None;
        }
        Some((at, run.settle(at, self.config.on_error)?))
    }

    /// Wakes whoever can go on, and does settled samples' last writes without the lock.
    fn go_on(
        &self,
        state: MutexGuard<'_, State>,
        settled: impl IntoIterator<Item = (At, Settled)>,
    ) {
        self.wake(&state);
        drop(state);
        let mut written = Vec::new();
        for (at, settled) in settled {
            if let Err(error) = settled.write(&self.fields) {
                return self.fail(Error::Slab(error));
            }
            written.push(at);
        }
        if written.is_empty() {
            return;
        }
        let mut state = self.lock();
        for at in written {
            if let Some(batch) = state.run.as_mut().and_then(|run| run.batch(at)) {
                batch.close_one();
            }
        }
        self.wake(&state);
    }
}

fn record_cost(record: &Record) -> u64 {
    record.values.iter().map(|value| value.cost() as u64).sum()
}

/// One job's part of the time since its submit.
fn shared_time(started: Instant, share: usize) -> Duration {
    started.elapsed() / u32::try_from(share.max(1)).unwrap_or(u32::MAX)
}
