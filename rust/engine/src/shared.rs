//! What the consumer, the threads and the sinks share: one lock over the state of the pipeline.
//!
//! Critical sections move small values between queues. Reading, probing, planning, decoding,
//! rendering, allocating and the writes of settled samples happen outside.

use crate::assembly::{FieldInfo, Held};
use crate::budget::{Budget, Permit};
use crate::pipeline::Progress;
use crate::route::Way;
use crate::run::Run;
use crate::scheduler::Backends;
use crate::stats::StageStats;
use crate::{EngineConfig, Error, Stats};
use forebay_core::ports::Token;
use forebay_core::{ImageMeta, ImagePlan};
use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Names a slot of a batch of a run; those of older runs are not found any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) run: u64,
    pub(crate) batch: u64,
    pub(crate) sample: usize,
}

/// A request that the source has.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) at: At,
    /// An estimate until the record is there.
    pub(crate) permit: Permit,
    pub(crate) started: Instant,
    /// Jobs of the same submit.
    pub(crate) share: usize,
}

/// An image that a decoder has.
#[derive(Debug)]
pub(crate) struct Decoding {
    pub(crate) at: At,
    pub(crate) field: usize,
    pub(crate) bytes: u64,
    pub(crate) meta: Arc<ImageMeta>,
    pub(crate) plan: Arc<ImagePlan>,
    pub(crate) held: Held,
    pub(crate) way: Way,
    pub(crate) started: Instant,
    pub(crate) share: usize,
}

/// A slot that the renderer has.
#[derive(Debug)]
pub(crate) struct Rendering {
    pub(crate) at: At,
    pub(crate) field: usize,
    pub(crate) held: Held,
    pub(crate) started: Instant,
    pub(crate) share: usize,
}

/// Everything that changes while a pipeline runs.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// A thread makes decoders ready, or has done so.
    pub(crate) warms_up: bool,
    pub(crate) run: Option<Run>,
    /// Runs started so far.
    pub(crate) runs: u64,
    /// Work that backends have, of this run and of older ones: it counts until it comes back.
    pub(crate) reads: HashMap<Token, Reading>,
    pub(crate) decodes: HashMap<Token, Decoding>,
    pub(crate) renders: HashMap<Token, Rendering>,
    /// Submits that each decoder works on.
    pub(crate) submits: Vec<usize>,
    /// Cost of the images that each decoder has.
    pub(crate) under_way: Vec<u64>,
    /// What each decoder did.
    pub(crate) decoders: Vec<StageStats>,
    last_token: Token,
    pub(crate) records_seen: u64,
    pub(crate) largest_record: u64,
    pub(crate) stats: Stats,
    /// What `progress` says without a run.
    pub(crate) progress: Progress,
    /// A thread allocates a batch at the moment.
    pub(crate) opening: bool,
    pub(crate) failed: Option<Error>,
    /// The device has no memory to render. Nothing is rendered until a batch was handed out, or the
    /// consumer knows.
    pub(crate) short: Option<Error>,
    pub(crate) closed: bool,
    pub(crate) idle_workers: usize,
    /// Threads of engines.
    pub(crate) idle_engines: usize,
    pub(crate) idle_readers: usize,
    /// Threads that have not ended.
    pub(crate) alive: usize,
}

impl State {
    pub(crate) fn token(&mut self) -> Token {
        self.last_token += 1;
        self.last_token
    }

    /// The error that every call gives from now on, if there is one.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.failed {
            _ if self.closed => Err(Error::Closed),
            Some(error) => Err(error.clone()),
            None => Ok(()),
        }
    }

    /// Where training stands.
    pub(crate) fn progress(&self) -> Progress {
        let Some(run) = &self.run else {
            return self.progress;
        };
        let (epoch, next_position) =
            if run.finished() { (run.epoch + 1, 0) } else { (run.epoch, run.delivered) };
        Progress { epoch, next_position }
    }

    /// Whether the batch that is due can be handed out.
    pub(crate) fn ready(&self) -> bool {
        let due = self.run.as_ref().and_then(|run| run.batches.front());
        due.is_some_and(crate::assembly::Assembly::done)
    }
}

/// What the threads share; the pipeline itself is not in here, so no thread keeps it alive, and
/// neither are the backends, so no backend's own thread is the last to drop it.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: EngineConfig,
    pub(crate) fields: Vec<FieldInfo>,
    pub(crate) backends: Backends,
    pub(crate) budget: Arc<Budget>,
    state: Mutex<State>,
    /// Workers wait here for jobs.
    pub(crate) work: Condvar,
    /// Threads of engines wait here for theirs, of all decoders.
    pub(crate) engines: Condvar,
    /// I/O threads wait here for requests.
    pub(crate) read: Condvar,
    /// `next` waits here for the batch that is due.
    pub(crate) ready: Condvar,
    /// `close` waits here for threads to end.
    pub(crate) ended: Condvar,
}

impl Shared {
    pub(crate) fn new(config: EngineConfig, fields: Vec<FieldInfo>, backends: Backends) -> Self {
        let submits = vec![0; backends.engines.len()];
        let under_way = vec![0; backends.engines.len()];
        let decoders = vec![StageStats::default(); backends.engines.len()];
        Self {
            config,
            fields,
            backends,
            budget: Budget::new(config.memory_budget),
            state: Mutex::new(State { submits, under_way, decoders, ..State::default() }),
            work: Condvar::new(),
            engines: Condvar::new(),
            read: Condvar::new(),
            ready: Condvar::new(),
            ended: Condvar::new(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes whoever can go on after a change of the state. One thread is enough: whoever finds
    /// work wakes the next one.
    pub(crate) fn wake(&self, state: &State) {
        let (backends, budget) = (&self.backends, &self.budget);
        // A single worker is the engines' thread, too.
        let is_alone = self.config.workers == 1;
        let waits = state.idle_engines > 0 || (is_alone && state.idle_workers > 0);
        let for_engines = waits && state.engines_have_work(backends, budget);
        if for_engines && state.idle_engines > 0 {
            self.engines.notify_all();
        }
        let for_one = is_alone && for_engines;
        if state.idle_workers > 0 && (for_one || state.threads_have_work(backends, budget)) {
            self.work.notify_one();
        }
        let room = state.ahead() < self.config.read_ahead;
        if state.idle_readers > 0 && room && state.unread() > 0 {
            self.read.notify_one();
        }
        if state.ready() || self.inline() {
            self.ready.notify_all();
        }
    }

    pub(crate) fn wake_all(&self) {
        self.work.notify_all();
        self.engines.notify_all();
        self.read.notify_all();
        self.ready.notify_all();
    }

    /// Whether the consumer's thread does all work.
    pub(crate) fn inline(&self) -> bool {
        self.config.workers == 0
    }

    /// Stops the pipeline for good; the first error stays.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.lock();
        if let Some(run) = &state.run {
            run.stop.raise();
        }
        state.failed.get_or_insert(error);
        self.wake_all();
    }
}

/// Waits on `condvar` for at most `time`.
pub(crate) fn wait<'a>(
    condvar: &Condvar,
    state: MutexGuard<'a, State>,
    time: Duration,
) -> MutexGuard<'a, State> {
    condvar.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
}
