//! The threads, and what they do with a job.

use crate::Error;
use crate::pipeline::Parts;
use crate::place;
use crate::prepare::{Times, prepare};
use crate::ranges::Range;
use crate::scheduler::{Job, Role};
use crate::shared::{Shared, wait};
use forebay_core::ports::{DecodeSink, Failed, RecordSink, RenderSink, Request};
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Largest number of records that one thread asks a source for at once.
const READ_GROUP: usize = 8;

/// The pipeline's threads.
#[derive(Debug, Default)]
pub(crate) struct Crew {
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Thread {
    handle: JoinHandle<()>,
    ended: Arc<AtomicBool>,
    /// Whether a read of a source may hold it up, which may take for ever.
    reads: bool,
}

impl Crew {
    /// Starts all threads; those that were started stay if one cannot be.
    pub(crate) fn start(&mut self, shared: &Arc<Shared>, parts: &Arc<Parts>) -> Result<(), Error> {
        // What waits for engines takes no worker's place.
        let waiters = if shared.inline() { 0 } else { shared.backends.waiting_threads() };
        for number in 0..shared.config.workers + waiters {
            self.spawn(format!("forebay-work-{number}"), number, shared, parts, work, false)?;
        }
        for number in 0..shared.config.io_threads {
            self.spawn(format!("forebay-io-{number}"), number, shared, parts, read, true)?;
        }
        Ok(())
    }

    fn spawn(
        &mut self,
        name: String,
        number: usize,
        shared: &Arc<Shared>,
        parts: &Arc<Parts>,
        body: fn(usize, &Arc<Shared>, &Parts),
        reads: bool,
    ) -> Result<(), Error> {
        let ended = Arc::new(AtomicBool::new(false));
        let thread = {
            let (shared, parts, ended) =
                (Arc::clone(shared), Arc::clone(parts), Arc::clone(&ended));
            let name = name.clone();
            move || {
                let config = &shared.config;
                if let Some(cpus) = &config.cpus {
                    place::stay_on(cpus);
                }
                if config.ranges {
                    nvtx::name_thread!("{name}");
                }
                body(number, &shared, &parts);
                drop(parts);
                ended.store(true, Ordering::Release);
                shared.lock().alive -= 1;
                shared.ended.notify_all();
            }
        };
        shared.lock().alive += 1;
        match std::thread::Builder::new().name(name.clone()).spawn(thread) {
            Ok(handle) => {
                self.threads.push(Thread { handle, ended, reads });
                Ok(())
            }
            Err(error) => {
                shared.lock().alive -= 1;
                Err(Error::Thread { name, source: Arc::new(error) })
            }
        }
    }

    /// Waits for the threads until `deadline`; returns how many are left behind.
    pub(crate) fn join(self, shared: &Shared, deadline: Instant) -> u64 {
        let mut state = shared.lock();
        while state.alive > 0 {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            state = wait(&shared.ended, state, left);
        }
        drop(state);
        let mut left_behind = 0;
        for Thread { handle, ended, reads } in self.threads {
            if ended.load(Ordering::Acquire) {
                // Panics were caught at the job.
                let _ = handle.join();
                continue;
            }
            left_behind += 1;
            if !reads {
                let mut list = LEFT_BEHIND.lock().unwrap_or_else(PoisonError::into_inner);
                list.push((std::process::id(), handle));
            }
        }
        left_behind
    }
}

/// Threads that `Crew::join` left at work, and the process whose they are: a forked child's copy of
/// the list speaks of threads that it does not have.
static LEFT_BEHIND: Mutex<Vec<(u32, JoinHandle<()>)>> = Mutex::new(Vec::new());

/// Waits until the work that closed pipelines left behind is done, and returns how much is not after
/// `timeout`. Reads do not count.
///
/// Libraries of devices do not survive it if a process ends while a thread is in one of them, and
/// what that thread does there, starting JPEG engines for instance, may take longer than `close` does.
pub fn left_behind(timeout: Duration) -> usize {
    const POLL: Duration = Duration::from_millis(1);
    let deadline = Instant::now() + timeout;
    loop {
        let left = match LEFT_BEHIND.try_lock() {
            Ok(mut list) => {
                let own = |process: u32| process == std::process::id();
                let done = list.extract_if(.., |(of, handle)| own(*of) && handle.is_finished());
                for (_, handle) in done {
                    let _ = handle.join();
                }
                list.iter().filter(|(process, _)| own(*process)).count()
            }
            // Someone is adding to it, or was when this process was forked.
            Err(_) => 1,
        };
        if left == 0 || Instant::now() >= deadline {
            return left;
        }
        std::thread::sleep(POLL);
    }
}

fn work(number: usize, shared: &Arc<Shared>, parts: &Parts) {
    let workers = shared.config.workers;
    let busy_threads = shared.backends.busy_threads(workers);
    let role = match () {
        () if number >= workers => Role::Waiter,
        () if workers == 1 => Role::All,
        () if number + busy_threads >= workers => Role::Engine,
        () => Role::Worker,
    };
    if role == Role::Worker && shared.backends.have_engines() {
        place::yield_to_others();
    }
    if shared.config.shares.is_some() {
        warm_up(shared, parts);
    }
    let mut state = shared.lock();
    while state.check().is_ok() {
        // One thread does the slow part, while the others have images to decode.
        if !state.warms_up && parts.want_warm_up() {
            state.warms_up = true;
            drop(state);
            warm_up(shared, parts);
            state = shared.lock();
            continue;
        }
        let Shared { fields, backends, budget, .. } = &**shared;
        if let Some(job) = state.pick(role, fields, backends, budget) {
            shared.wake(&state);
            drop(state);
            run(job, shared, parts);
            state = shared.lock();
        } else if matches!(role, Role::Engine | Role::Waiter) {
            state.idle_engines += 1;
            state = shared.engines.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle_engines -= 1;
        } else {
            state.idle_workers += 1;
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle_workers -= 1;
        }
    }
    drop(state);
    // Those that gave engines their work: whoever closes the pipeline waits for them, and no longer
    // than it may.
    if matches!(role, Role::All | Role::Engine) {
        for decoder in &parts.decoders {
            guard(shared, "retiring a decoder", || decoder.retire());
        }
    }
}

/// Makes decoders ready; waits if another thread does.
pub(crate) fn warm_up(shared: &Shared, parts: &Parts) {
    for decoder in &parts.decoders {
        guard(shared, "warming up a decoder", || decoder.warm_up());
    }
}

fn read(_number: usize, shared: &Arc<Shared>, parts: &Parts) {
    let mut state = shared.lock();
    while state.check().is_ok() {
        let fair = state.unread().div_ceil(shared.config.io_threads);
        let most = fair.clamp(1, READ_GROUP);
        let requests = state.pick_reads(most, shared.config.read_ahead, &shared.budget);
        if requests.is_empty() {
            state.idle_readers += 1;
            state = shared.read.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle_readers -= 1;
        } else {
            shared.wake(&state);
            drop(state);
            request(&requests, shared, parts);
            state = shared.lock();
        }
    }
}

/// Asks the source for records.
pub(crate) fn request(requests: &[Request], shared: &Arc<Shared>, parts: &Parts) {
    let _range = Range::begin(shared.config.ranges, format_args!("read {}", requests.len()));
    let sink: Arc<dyn RecordSink> = Arc::<Shared>::clone(shared);
    guard(shared, "reading", || parts.source.request(requests, &sink));
}

/// Does one job.
pub(crate) fn run(job: Job, shared: &Arc<Shared>, parts: &Parts) {
    let range = |name: fmt::Arguments<'_>| Range::begin(shared.config.ranges, name);
    match job {
        Job::Prepare { at, incoming } => guard(shared, "preparing a sample", || {
            let _range = range(format_args!("prepare, batch {}", at.batch));
            let mut times = Times::default();
            let prepared =
                prepare(incoming, &shared.fields, parts, shared.config.shares, &mut times);
            shared.prepared(at, prepared, &times);
        }),
        Job::Decode { decoder, jobs } => {
            let (name, count) = (parts.decoders[decoder].name(), jobs.len());
            let _range = range(format_args!("decode {count}, {name}"));
            let sink: Arc<dyn DecodeSink> = Arc::<Shared>::clone(shared);
            guard(shared, "decoding", || parts.decoders[decoder].submit(jobs, &sink));
            let mut state = shared.lock();
            state.submits[decoder] -= 1;
            shared.wake(&state);
        }
        Job::Render { batch, slab, jobs } => {
            let _range = range(format_args!("render {}, batch {batch}", jobs.len()));
            let reserved = slab.reserve();
            // Sealing wants the slab for itself once the last slot is back.
            drop(slab);
            if let Err(error) = reserved {
                return shared.fail(Error::Slab(error));
            }
            let sink: Arc<dyn RenderSink> = Arc::<Shared>::clone(shared);
            guard(shared, "rendering", || parts.renderer.submit(jobs, &sink));
        }
        Job::Mix { run, batch, fields, mixes } => guard(shared, "mixing a batch", || {
            let _range = range(format_args!("mix, batch {batch}"));
            let mixes: Vec<_> = mixes.iter().map(|mixing| mixing.mix).collect();
            for (field, mut slots) in fields {
                let spec = &parts.planner.specs()[field];
                if let Err(Failed { kind, reason }) = parts.renderer.mix(&mut slots, spec, &mixes) {
                    return shared.fail(Error::Backend { kind, reason });
                }
            }
            shared.mixed(run, batch);
        }),
    }
}

/// Runs a backend; its panic stops the pipeline instead of the thread.
fn guard(shared: &Shared, during: &'static str, body: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        shared.fail(panicked(during, &*payload));
    }
}

/// The error that a caught panic becomes.
pub(crate) fn panicked(during: &'static str, payload: &(dyn Any + Send)) -> Error {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    Error::Internal { during, reason: text.unwrap_or("panic without a text").to_owned() }
}
