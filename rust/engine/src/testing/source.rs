//! A source of made-up records that can be bad, late, out of order or stuck.

use forebay_core::ports::{Fault, RecordSink, Request, Source, Stage};
use forebay_core::rng::EpochKey;
use forebay_core::{Bytes, Field, Record, Schema, Value};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    /// It cannot be read.
    Read,
    /// Its first image has no header.
    Header,
    /// Its mask's pixels are damaged.
    Pixels,
    /// The planner refuses it.
    Plan,
    /// The renderer fails after having written rubbish.
    Render,
    /// The decoder panics.
    Panic,
}

/// How records come back.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// Before `request` returns.
    Inline,
    /// From a thread of the source's own, in random order.
    Shuffled,
    /// `request` blocks at the gate when it comes to this index.
    Stuck(u64, Arc<Gate>),
}

/// Blocks threads until it is opened.
#[derive(Debug, Default)]
pub struct Gate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    /// Lets everyone through from now on.
    pub fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    /// Whether it is.
    pub fn is_open(&self) -> bool {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the gate is open.
    pub fn pass(&self) {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.opened.wait_while(open, |open| !*open));
    }
}

type Ask = (Request, Arc<dyn RecordSink>);

/// Records of two images, a mask, boxes and a label, made from their index.
#[derive(Debug)]
pub struct FakeSource {
    schema: Schema,
    records: Arc<Records>,
    delivery: Delivery,
    requested: AtomicU64,
    thread: Option<(Sender<Ask>, JoinHandle<()>)>,
}

#[derive(Debug)]
struct Records {
    len: u64,
    image_bytes: usize,
    bad: BTreeMap<u64, Bad>,
}

impl FakeSource {
    /// `len` records whose images have `image_bytes` to twice as many bytes; the label is the
    /// index.
    ///
    /// # Panics
    /// The system gives no thread.
    pub fn new(
        len: u64,
        image_bytes: usize,
        bad: impl IntoIterator<Item = (u64, Bad)>,
        delivery: Delivery,
    ) -> Self {
        let records = Arc::new(Records { len, image_bytes, bad: bad.into_iter().collect() });
        let thread = matches!(delivery, Delivery::Shuffled).then(|| {
            let (sender, receiver) = channel();
            let records = Arc::clone(&records);
            let thread = std::thread::Builder::new()
                .name("fake-source".to_owned())
                .spawn(move || deliver_shuffled(&records, &receiver))
                .expect("the system gives a thread");
            (sender, thread)
        });
        Self {
            schema: Schema {
                fields: vec![
                    Field::image("left"),
                    Field::image("right"),
                    Field::mask("mask"),
                    Field::boxes("boxes"),
                    Field::label("label"),
                ],
            },
            records,
            delivery,
            requested: AtomicU64::new(0),
            thread,
        }
    }

    /// Records that were asked for.
    pub fn requested(&self) -> u64 {
        self.requested.load(Ordering::Relaxed)
    }
}

impl Source for FakeSource {
    fn len(&self) -> Option<u64> {
        Some(self.records.len)
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn fingerprint(&self) -> u64 {
        self.records.len
    }

    fn key(&self, index: u64) -> String {
        format!("fake/{index}")
    }

    fn request(&self, requests: &[Request], sink: &Arc<dyn RecordSink>) {
        for &request in requests {
            self.requested.fetch_add(1, Ordering::Relaxed);
            if let Some((sender, _)) = &self.thread {
                // Fails only if the thread has panicked, which the test will notice.
                let _ = sender.send((request, Arc::clone(sink)));
                continue;
            }
            if let Delivery::Stuck(index, gate) = &self.delivery
                && *index == request.index
            {
                gate.pass();
            }
            self.records.deliver(request, &**sink);
        }
    }
}

impl Drop for FakeSource {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

impl Records {
    /// Says a record's size before it is there, as files' sources do.
    fn deliver(&self, request: Request, sink: &dyn RecordSink) {
        let record = self.read(request.index);
        let bytes = record.iter().flat_map(|record| &record.values).map(Value::cost).sum::<usize>();
        if sink.admit(request.token, bytes as u64) {
            sink.deliver(request.token, record);
        }
    }

    fn read(&self, index: u64) -> Result<Record, Fault> {
        let bad = self.bad.get(&index).copied();
        if bad == Some(Bad::Read) {
            return Err(Fault::new(Stage::Read, "the fake source cannot read this"));
        }
        let tag = |field: u64| match (bad, field) {
            (Some(Bad::Header), 0) => 1,
            (Some(Bad::Pixels), 2) => 2,
            (Some(Bad::Render), 1) => 3,
            (Some(Bad::Panic), 0) => 4,
            _ => 0,
        };
        let image = |field| {
            let mut draws = EpochKey::new(index, field).draws(0, 0, 0);
            let more = usize::try_from(draws.below(self.image_bytes as u64)).unwrap_or(0);
            let mut bytes = vec![tag(field); self.image_bytes + more];
            bytes[1..].fill_with(|| draws.bits().to_ne_bytes()[0]);
            Value::Encoded(Bytes::new(bytes))
        };
        let boxes = (0..index * 7 % 51).map(|row| [index as f32, row as f32, 0.5, 1.0]);
        let label = i64::try_from(index).unwrap_or(i64::MAX);
        Ok(Record {
            values: vec![
                image(0),
                image(1),
                image(2),
                Value::Boxes(boxes.collect()),
                Value::Int(if bad == Some(Bad::Plan) { -1 } else { label }),
            ],
        })
    }
}

/// Gathers requests for a moment, then answers one of them at random.
fn deliver_shuffled(records: &Records, receiver: &Receiver<Ask>) {
    let mut draws = EpochKey::new(0, 0).draws(0, 0, 0);
    let mut waiting: Vec<Ask> = Vec::new();
    loop {
        match receiver.recv_timeout(Duration::from_micros(50)) {
            Ok(ask) if waiting.len() < 8 => waiting.push(ask),
            Ok(ask) => {
                waiting.push(ask);
                answer(records, &mut waiting, draws.bits());
            }
            Err(RecvTimeoutError::Timeout) => answer(records, &mut waiting, draws.bits()),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    while !waiting.is_empty() {
        answer(records, &mut waiting, draws.bits());
    }
}

fn answer(records: &Records, waiting: &mut Vec<Ask>, random: u64) {
    if waiting.is_empty() {
        return;
    }
    let chosen = usize::try_from(random % waiting.len() as u64).unwrap_or(0);
    let (request, sink) = waiting.swap_remove(chosen);
    records.deliver(request, &*sink);
}
