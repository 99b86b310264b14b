//! Samples that somebody outside supplies on request: a map-style dataset in Python.
//!
//! Rust never calls Python. Requests wait in a queue until a thread of Python's takes them, runs
//! the user's code, and supplies bytes or a fault for each.

use forebay_core::ports::{Fault, RecordSink, Request, Source, Stage, Token};
use forebay_core::{Bytes, Field, Record, Schema, Value};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

/// Number of samples of a pushed source; `None` for a stream.
pub type PushedLen = Option<u64>;

/// A source whose samples come from outside.
#[derive(Debug)]
pub struct Pushed {
    len: PushedLen,
    fingerprint: u64,
    schema: Schema,
    queue: Mutex<Queue>,
    asked: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Request>,
    /// Who waits for the requests that are not answered yet.
    sinks: HashMap<Token, Arc<dyn RecordSink>>,
    closed: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (waiting, unanswered) = (self.waiting.len(), self.sinks.len());
        let mut out = f.debug_struct("Queue");
        out.field("waiting", &waiting).field("unanswered", &unanswered).finish_non_exhaustive()
    }
}

impl Pushed {
    /// A source of `len` images.
    pub fn new(len: PushedLen, fingerprint: u64) -> Self {
        let schema = Schema { fields: vec![Field::image("image")] };
        let (queue, asked) = (Mutex::default(), Condvar::new());
        Self { len, fingerprint, schema, queue, asked }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes at most `max` requests; waits for the first one up to `timeout`.
    pub fn take(&self, max: usize, timeout: Duration) -> Vec<Request> {
        let idle = |queue: &mut Queue| queue.waiting.is_empty() && !queue.closed;
        let waited = self.asked.wait_timeout_while(self.lock(), timeout, idle);
        let (mut queue, _) = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        let count = max.min(queue.waiting.len());
        queue.waiting.drain(..count).collect()
    }

    /// Answers a request that was taken; one that is no longer wanted is dropped.
    pub fn supply(&self, token: Token, bytes: Result<Bytes, Fault>) {
        let sink = self.lock().sinks.remove(&token);
        if let Some(sink) = sink {
            sink.deliver(token, bytes.map(|bytes| Record { values: vec![Value::Encoded(bytes)] }));
        }
    }

    /// Forgets every request (a new epoch begins); later answers to them are dropped. What was
    /// forgotten is to be refused once nobody wants it any more.
    pub fn clear(&self) -> Forgotten {
        let mut queue = self.lock();
        queue.waiting.clear();
        Forgotten(std::mem::take(&mut queue.sinks))
    }

    /// Wakes everyone who waits for requests; there will be none.
    pub fn close(&self) {
        self.lock().closed = true;
        self.asked.notify_all();
        self.clear().refuse();
    }
}

/// Requests that will not be answered.
#[must_use]
pub struct Forgotten(HashMap<Token, Arc<dyn RecordSink>>);

impl Forgotten {
    /// Completes them: every request completes once, or whoever waits counts it for ever.
    pub fn refuse(self) {
        for (token, sink) in self.0 {
            sink.deliver(token, Err(Fault::new(Stage::Dataset, "the request was withdrawn")));
        }
    }
}

impl std::fmt::Debug for Forgotten {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Forgotten({} requests)", self.0.len())
    }
}

impl Source for Pushed {
    fn len(&self) -> Option<u64> {
        self.len
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fingerprint(&self) -> u64 {
        self.fingerprint
    }

    fn key(&self, index: u64) -> String {
        format!("[{index}]")
    }

    fn request(&self, requests: &[Request], sink: &Arc<dyn RecordSink>) {
        let mut queue = self.lock();
        for request in requests {
            queue.waiting.push_back(*request);
            queue.sinks.insert(request.token, Arc::clone(sink));
        }
        drop(queue);
        self.asked.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Collect(Mutex<Vec<(Token, Result<usize, Fault>)>>);

    impl RecordSink for Collect {
        fn deliver(&self, token: Token, record: Result<Record, Fault>) {
            let bytes = record.map(|record| record.values[0].cost());
            self.0.lock().unwrap().push((token, bytes));
        }
    }

    fn ask(source: &Pushed, sink: &Arc<dyn RecordSink>, tokens: std::ops::Range<u64>) {
        let requests: Vec<Request> =
            tokens.map(|token| Request { token, index: token * 2 }).collect();
        source.request(&requests, sink);
    }

    #[test]
    fn requests_are_taken_once_and_answered_in_any_order() {
        let source = Pushed::new(Some(10), 1);
        let collect = Arc::new(Collect::default());
        let sink: Arc<dyn RecordSink> = Arc::<Collect>::clone(&collect);
        ask(&source, &sink, 0..3);
        let first = source.take(2, Duration::ZERO);
        assert_eq!(first, [(0, 0), (1, 2)].map(|(token, index)| Request { token, index }));
        assert_eq!(source.take(9, Duration::ZERO).len(), 1);
        assert!(source.take(9, Duration::ZERO).is_empty());
        let fault = Fault::new(Stage::Dataset, "boom");
        source.supply(1, Ok(Bytes::new(vec![0; 5])));
        source.supply(0, Err(fault.clone()));
        source.supply(1, Ok(Bytes::new(vec![0; 6])));
        assert_eq!(*collect.0.lock().unwrap(), [(1, Ok(5)), (0, Err(fault))]);
    }

    #[test]
    fn answers_after_clear_are_dropped_and_close_wakes() {
        let source = Arc::new(Pushed::new(None, 1));
        let collect = Arc::new(Collect::default());
        let sink: Arc<dyn RecordSink> = Arc::<Collect>::clone(&collect);
        ask(&source, &sink, 0..2);
        assert_eq!(source.take(1, Duration::ZERO).len(), 1);
        let forgotten = source.clear();
        source.supply(0, Ok(Bytes::new(vec![])));
        assert!(collect.0.lock().unwrap().is_empty());
        forgotten.refuse();
        assert_eq!(collect.0.lock().unwrap().len(), 2, "every request completes once");
        drop(sink);
        assert_eq!(Arc::strong_count(&collect), 1, "no sink is kept");
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| source.take(1, Duration::from_secs(30)));
            source.close();
            assert!(waiter.join().unwrap().is_empty());
        });
    }
}
