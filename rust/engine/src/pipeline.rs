//! The pipeline as its owner sees it: open, start an epoch, next, close.

use crate::assembly::Finished;
use crate::feed::{Feed, no_length};
use crate::opening::{field_infos, open_batches};
use crate::ranges::Range;
use crate::run::{Due, Run};
use crate::scheduler::{Backends, Role};
use crate::shared::{Shared, State, wait};
use crate::worker::{Crew, panicked, request, run, warm_up};
use crate::{Batch, EngineConfig, Error, FeedConfig, OnError, Stats};
use forebay_core::ports::{Decoder, Renderer, Source, Stop};
use forebay_core::recipe::Planner;
use forebay_slab::Allocator;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long `close` waits for threads in total (LIF-1).
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// The backends of a pipeline.
#[derive(Clone)]
pub struct Parts {
    /// Where records come from.
    pub source: Arc<dyn Source>,
    /// The one that would be done first decodes; the first one probes.
    pub decoders: Vec<Arc<dyn Decoder>>,
    /// Writes the slots.
    pub renderer: Arc<dyn Renderer>,
    /// The recipe.
    pub planner: Arc<dyn Planner>,
    /// Where batches' memory comes from.
    pub allocator: Arc<dyn Allocator>,
}

impl Parts {
    pub(crate) fn want_warm_up(&self) -> bool {
        self.decoders.iter().any(|decoder| decoder.wants_warm_up())
    }
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decoders = self.decoders.iter().map(|decoder| decoder.name());
        f.debug_struct("Parts")
            .field("decoders", &decoders.collect::<Vec<_>>())
            .field("renderer", &self.renderer.name())
            .finish_non_exhaustive()
    }
}

/// What `next` has to say.
#[derive(Debug)]
pub enum Next {
    /// The batch that was due.
    Batch(Box<Batch>),
    /// It is not there yet.
    Pending,
    /// The epoch is over.
    End,
}

/// Where training stands: what `start_epoch` takes to go on from there (RES-1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    /// The epoch; after its last batch the next one.
    pub epoch: u64,
    /// Position behind the last batch handed out; for pushed feeds the local ordinal.
    pub next_position: u64,
}

/// A running data pipeline. All functions may be called from any thread; batches go to whoever
/// calls `next` first.
///
/// ```
/// use forebay_core::order::{Dealing, LastBatch};
/// use forebay_engine::testing::{Delivery, FakeDecoder, FakePlanner, FakeRenderer, FakeSource, PixelRoute};
/// use forebay_engine::{EngineConfig, FeedConfig, Next, Parts, Pipeline};
/// use std::{sync::Arc, time::Duration};
/// # fn main() -> Result<(), forebay_engine::Error> {
/// let dealing = Dealing { batch_size: 4, rank: 0, world_size: 1, last_batch: LastBatch::Partial };
/// let config = EngineConfig::new(FeedConfig::Ordered { seed: 0, shuffle: true, dealing });
/// let parts = Parts {
///     source: Arc::new(FakeSource::new(10, 100, [], Delivery::Inline)),
///     decoders: vec![Arc::new(FakeDecoder::new(PixelRoute::Host))],
///     renderer: Arc::new(FakeRenderer),
///     planner: Arc::new(FakePlanner::new(8)),
///     allocator: Arc::new(forebay_slab::Pageable::default()),
/// };
/// let pipeline = Pipeline::open(config, parts)?;
/// pipeline.start_epoch(0, 0)?;
/// let mut samples = 0;
/// loop {
///     match pipeline.next(Duration::from_millis(50))? {
///         Next::Batch(batch) => samples += batch.indices.len(),
///         Next::Pending => {}
///         Next::End => break,
///     }
/// }
/// assert_eq!(samples, 10);
/// assert_eq!(pipeline.progress().epoch, 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Pipeline {
    shared: Arc<Shared>,
    parts: Arc<Parts>,
    /// `None` until the first `next`.
    crew: Mutex<Option<Crew>>,
}

impl Pipeline {
    /// Checks that everything fits together. Starts no thread and reads nothing.
    ///
    /// # Errors
    /// An option makes no sense, or contradicts a part.
    pub fn open(config: EngineConfig, parts: Parts) -> Result<Self, Error> {
        config.validate()?;
        if parts.decoders.is_empty() {
            return Err(Error::Parts { reason: "expected a decoder, got none".to_owned() });
        }
        if parts.source.len().is_none() {
            if matches!(config.feed, FeedConfig::Ordered { .. }) {
                return Err(no_length());
            }
            if config.on_error == OnError::Replace {
                return Err(Error::Option {
                    option: "on_error",
                    reason: "\"replace\" needs a source with a length, use \"skip\" or \"raise\""
                        .to_owned(),
                });
            }
        }
        let fields = field_infos(parts.source.schema(), parts.planner.specs())?;
        let backends = Backends {
            engines: parts.decoders.iter().map(|decoder| decoder.engines()).collect(),
            renderer: parts.renderer.preferred_jobs().max(1),
        };
        Ok(Self {
            shared: Arc::new(Shared::new(config, fields, backends)),
            parts: Arc::new(parts),
            crew: Mutex::new(None),
        })
    }

    /// Starts `epoch` at `position` (for pushed feeds: a local ordinal), and drops whatever was
    /// running.
    ///
    /// # Errors
    /// The position lies behind the epoch's end, or the pipeline is closed or has failed.
    pub fn start_epoch(&self, epoch: u64, position: u64) -> Result<(), Error> {
        let config = &self.shared.config;
        let feed = Feed::new(&config.feed, self.parts.source.len(), epoch, position)?;
        let mut state = self.shared.lock();
        state.check()?;
        state.runs += 1;
        state.short = None;
        let run = Run {
            id: state.runs,
            epoch,
            feed,
            stop: Stop::default(),
            next_up: None,
            batches: VecDeque::new(),
            first: 0,
            depth: if self.shared.inline() { 1 } else { config.depth },
            delivered: position,
        };
        let old = state.run.replace(run);
        if let Some(old) = &old {
            old.stop.raise();
        }
        drop(state);
        drop(old);
        self.shared.wake_all();
        Ok(())
    }

    /// Hands a batch of sample indices to a pushed feed.
    ///
    /// # Errors
    /// The feed is an order, the batch is empty or an index out of range, or the epoch has ended.
    pub fn push_batch(&self, indices: &[u64]) -> Result<(), Error> {
        self.with_feed(|feed| feed.push(indices))
    }

    /// Ends a pushed feed's epoch.
    ///
    /// # Errors
    /// The feed is an order.
    pub fn push_end(&self) -> Result<(), Error> {
        self.with_feed(Feed::push_end)
    }

    fn with_feed(&self, act: impl FnOnce(&mut Feed) -> Result<(), Error>) -> Result<(), Error> {
        let mut state = self.shared.lock();
        state.check()?;
        act(&mut state.run.as_mut().ok_or(Error::NotStarted)?.feed)?;
        drop(state);
        self.shared.ready.notify_all();
        Ok(())
    }

    /// How many more batches a pushed feed should get, to keep one more than `depth` on the way.
    pub fn wanted_batches(&self) -> usize {
        let state = self.shared.lock();
        let run = state.run.as_ref().filter(|_| state.check().is_ok());
        let wanted = run.and_then(|run| {
            let coming =
                run.feed.waiting()? + run.batches.len() + usize::from(run.next_up.is_some());
            Some((self.shared.config.depth + 1).saturating_sub(coming))
        });
        wanted.unwrap_or(0)
    }

    /// The batch that is due, as soon as it is there but at most after `timeout`. Without workers
    /// the work is done here, and the piece at hand may exceed the timeout.
    ///
    /// # Errors
    /// No epoch was started; the pipeline is closed; memory is exhausted; too many samples were
    /// bad; or a backend panicked, after which every call gives the same error.
    pub fn next(&self, timeout: Duration) -> Result<Next, Error> {
        let started = Instant::now();
        self.start_crew()?;
        let mut worked = false;
        loop {
            let mut state = open_batches(&self.shared, &self.parts)?;
            state.check()?;
            let run = state.run.as_mut().ok_or(Error::NotStarted)?;
            if run.finished() {
                return Ok(Next::End);
            }
            if let Some(due) = run.take_due() {
                state.short = None;
                self.shared.wake(&state);
                drop(state);
                return self.hand_out(due).map(Next::Batch);
            }
            // What the renderer is at may yet make the batch that is due complete.
            let due = run.batches.front();
            let is_coming = due.is_some_and(|batch| batch.rendering > 0 || batch.only_mixes());
            if !is_coming && let Some(short) = state.short.take() {
                self.shared.wake(&state);
                return Err(short);
            }
            let left = timeout.saturating_sub(started.elapsed());
            if self.shared.inline() && (!worked || !left.is_zero()) {
                let Some(idle) = self.work_inline(state) else {
                    worked = true;
                    continue;
                };
                state = idle;
            }
            if left.is_zero() {
                return Ok(Next::Pending);
            }
            let waiting = Instant::now();
            state = wait(&self.shared.ready, state, left);
            state.stats.wait_seconds += waiting.elapsed().as_secs_f64();
        }
    }

    /// Where training stands, by the batches handed out.
    pub fn progress(&self) -> Progress {
        self.shared.lock().progress()
    }

    /// The counters since the pipeline was opened.
    pub fn stats(&self) -> Stats {
        let state = self.shared.lock();
        let (stats, decoders) = (state.stats.clone(), state.decoders.clone());
        drop(state);
        let names = self.parts.decoders.iter().map(|decoder| decoder.name());
        Stats {
            decoders: names.zip(decoders).collect(),
            held_bytes: self.shared.budget.held(),
            peak_bytes: self.shared.budget.peak(),
            ..stats
        }
    }

    /// Stops everything and waits for the threads, at most a second in total (LIF-1). A thread
    /// that is stuck in a read is left behind and counted in `stats`. Later calls do nothing.
    pub fn close(&self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.progress = state.progress();
        let dropped = (
            state.run.take().inspect(|run| run.stop.raise()),
            std::mem::take(&mut state.reads),
            std::mem::take(&mut state.decodes),
            std::mem::take(&mut state.renders),
        );
        drop(state);
        drop(dropped);
        self.shared.wake_all();
        // Taken first: the lock must not be held while threads are waited for.
        let crew = self.crew().take();
        if let Some(crew) = crew {
            let left = crew.join(&self.shared, Instant::now() + CLOSE_TIME);
            self.shared.lock().stats.threads_left = left;
        }
    }

    fn crew(&self) -> MutexGuard<'_, Option<Crew>> {
        self.crew.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the threads at the first call (LIF-1).
    fn start_crew(&self) -> Result<(), Error> {
        let mut crew = self.crew();
        self.shared.lock().check()?;
        if crew.is_some() {
            return Ok(());
        }
        if self.shared.inline() {
            if self.shared.config.shares.is_some() {
                warm_up(&self.shared, &self.parts);
            }
            *crew = Some(Crew::default());
            return Ok(());
        }
        let started = crew.insert(Crew::default()).start(&self.shared, &self.parts);
        started.inspect_err(|error| self.shared.fail(error.clone()))
    }

    /// Does one piece of work on this thread; gives the lock back if there was none.
    fn work_inline<'a>(&self, mut state: MutexGuard<'a, State>) -> Option<MutexGuard<'a, State>> {
        if self.parts.want_warm_up() {
            drop(state);
            warm_up(&self.shared, &self.parts);
            return None;
        }
        let Shared { fields, backends, budget, .. } = &*self.shared;
        if let Some(job) = state.pick(Role::All, fields, backends, budget) {
            drop(state);
            run(job, &self.shared, &self.parts);
            return None;
        }
        let requests = state.pick_reads(1, self.shared.config.read_ahead, &self.shared.budget);
        if requests.is_empty() {
            return Some(state);
        }
        drop(state);
        request(&requests, &self.shared, &self.parts);
        None
    }

    /// Lets the next batch begin, seals this one, and counts.
    fn hand_out(&self, due: Due) -> Result<Box<Batch>, Error> {
        let Due { run, epoch, batch } = due;
        let _range = Range::begin(self.shared.config.ranges, format_args!("hand out a batch"));
        // The next batch's work begins before this one is sealed; an error comes again.
        drop(open_batches(&self.shared, &self.parts));
        let finish = || batch.finish(epoch, |index| self.parts.source.key(index));
        let batch = catch_unwind(AssertUnwindSafe(finish))
            .unwrap_or_else(|payload| Err(panicked("handing out a batch", &*payload)))
            .and_then(|finished| self.count(run, finished));
        if let Err(error) = &batch {
            self.shared.fail(error.clone());
        }
        batch
    }

    fn count(&self, run: u64, finished: Finished) -> Result<Box<Batch>, Error> {
        let Finished { batch, replaced, skipped } = finished;
        let mut state = self.shared.lock();
        state.check()?;
        let valid = batch.valid.iter().filter(|&&valid| valid).count() as u64;
        let bad = state.stats.bad_samples + batch.failures.len() as u64;
        state.stats.bad_samples = bad;
        if let Some(max) = self.shared.config.max_errors
            && bad > max
            && let Some(last) = batch.failures.last()
        {
            return Err(Error::TooManyBadSamples {
                bad,
                max,
                last: format!("{}: {}: {}", last.key, last.stage.name(), last.reason),
            });
        }
        let stats = &mut state.stats;
        stats.batches += 1;
        stats.replaced += replaced;
        stats.skipped += skipped;
        if batch.slab.is_some() {
            stats.samples += valid;
        } else {
            stats.dropped_samples += valid;
        }
        if let Some(run) = state.run.as_mut().filter(|current| current.id == run) {
            run.delivered = run.delivered.max(batch.next_position);
        }
        Ok(batch)
    }
}

impl Drop for Pipeline {
    fn drop(&mut self) {
        self.close();
    }
}
