//! One long job on a thread of its own, started and polled (a scan of a folder, say).

use crate::Error;
use forebay_core::ports::Stop;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A job that runs in the background and ends early when this is dropped.
///
/// ```
/// use forebay_engine::Background;
/// use std::time::Duration;
/// let job = Background::start("sum", |_stop| 1 + 1).unwrap();
/// let result = loop {
///     if let Some(result) = job.wait(Duration::from_millis(50)) {
///         break result;
///     }
/// };
/// assert_eq!(result, Some(2));
/// assert_eq!(job.wait(Duration::ZERO), Some(None), "a result is taken once");
/// ```
#[derive(Debug)]
pub struct Background<T> {
    shared: Arc<Shared<T>>,
    stop: Stop,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
}

#[derive(Debug)]
enum State<T> {
    Running,
    Done(T),
    /// The result was taken, or the job panicked.
    Gone,
}

impl<T: Send + 'static> Background<T> {
    /// Starts `job`, which should end soon after its `Stop` is raised.
    ///
    /// # Errors
    /// The operating system has no thread to give.
    pub fn start(name: &str, job: impl FnOnce(&Stop) -> T + Send + 'static) -> Result<Self, Error> {
        let shared = Arc::new(Shared { state: Mutex::new(State::Running), ended: Condvar::new() });
        let stop = Stop::default();
        let (theirs, their_stop) = (Arc::clone(&shared), stop.clone());
        let run = move || {
            // Whatever happens to the job, whoever waits is told that it ended.
            let ending = Ending(&theirs);
            let result = job(&their_stop);
            *theirs.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Done(result);
            drop(ending);
        };
        std::thread::Builder::new()
            .name(name.into())
            .spawn(run)
            .map_err(|source| Error::Thread { name: name.into(), source: Arc::new(source) })?;
        Ok(Self { shared, stop })
    }

    /// Waits up to `timeout`: `None` while the job runs, then its result once, then `Some(None)`.
    pub fn wait(&self, timeout: Duration) -> Option<Option<T>> {
        let state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        let running = |state: &mut State<T>| matches!(state, State::Running);
        let waited = self.shared.ended.wait_timeout_while(state, timeout, running);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Gone) {
            State::Running => {
                *state = State::Running;
                None
            }
            State::Done(result) => Some(Some(result)),
            State::Gone => Some(None),
        }
    }
}

impl<T> Drop for Background<T> {
    fn drop(&mut self) {
        self.stop.raise();
    }
}

struct Ending<'a, T>(&'a Shared<T>);

impl<T> Drop for Ending<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*state, State::Running) {
            *state = State::Gone;
        }
        drop(state);
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_stops_and_a_panic_is_an_end() {
        let (tell, told) = std::sync::mpsc::channel();
        let job = Background::start("waits", move |stop| {
            while !stop.raised() {
                std::thread::yield_now();
            }
            tell.send(()).unwrap();
        })
        .unwrap();
        assert_eq!(job.wait(Duration::ZERO), None);
        drop(job);
        told.recv_timeout(Duration::from_secs(30)).expect("the job ends");
        let job = Background::<()>::start("panics", |_| panic!("on purpose")).unwrap();
        assert_eq!(job.wait(Duration::from_secs(30)), Some(None));
    }
}
