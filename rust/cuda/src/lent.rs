//! A batch's field in memory that torch's allocator owns.
//!
//! The memory belongs to whoever's stream it was allocated on: what we write waits for that
//! stream's work so far, and whoever gets the field waits for what we wrote. Nothing waits on the
//! host.

use crate::Error;
use crate::driver::{Event, Stream, Wait, fill};
use forebay_core::ports::{DeviceMemory, Fault, Stage};
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// One field of one batch, lent to the renderer.
#[derive(Debug)]
pub struct Lent {
    address: u64,
    bytes: usize,
    /// The allocating stream, by its handle, and its work before it got the memory.
    stream: usize,
    allocated: Event,
    /// The stream that wrote last, and when it is done.
    render: Arc<Stream>,
    state: Mutex<State>,
    retired: Arc<Retired>,
}

#[derive(Default)]
struct State {
    written: Vec<Arc<Event>>,
    owner: Option<Owner>,
}

type Owner = Box<dyn Any + Send>;

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("written", &self.written.len()).finish_non_exhaustive()
    }
}

impl Lent {
    /// Takes over memory that `owner` keeps, as it was allocated on `stream`.
    ///
    /// # Errors
    /// The driver refuses.
    pub(crate) fn new(
        address: u64,
        bytes: usize,
        owner: Owner,
        stream: &Stream,
        render: &Arc<Stream>,
        retired: &Arc<Retired>,
    ) -> Result<Self, Error> {
        retired.sweep();
        let allocated = Event::new(stream.device(), Wait::Block)?;
        allocated.record(stream)?;
        Ok(Self {
            address,
            bytes,
            stream: stream.raw().addr(),
            allocated,
            render: Arc::clone(render),
            state: Mutex::new(State { written: Vec::new(), owner: Some(owner) }),
            retired: Arc::clone(retired),
        })
    }

    /// Lets `render` go on only after the memory is ours.
    pub(crate) fn wait_before_writing(&self, render: &Stream) -> Result<(), Error> {
        render.wait(&self.allocated)
    }

    /// Whoever gets the memory waits for `event`.
    pub(crate) fn written(&self, event: &Arc<Event>) {
        self.lock().written.push(Arc::clone(event));
    }

    /// Gives the memory to `stream`, which waits for the last write, and returns its owner.
    ///
    /// # Errors
    /// It was handed out before, or the driver refuses.
    pub fn hand_out(&self, stream: &Stream) -> Result<Box<dyn Any + Send>, Error> {
        let mut state = self.lock();
        for event in &state.written {
            stream.wait(event)?;
        }
        let twice = || Error::Invalid { what: "a field was handed out twice".to_owned() };
        state.owner.take().ok_or_else(twice)
    }

    /// Whether it was allocated for this stream.
    pub fn is_of(&self, stream: &Stream) -> bool {
        self.stream == stream.raw().addr()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn clear(&self, offset: usize, bytes: usize) -> Result<(), Error> {
        if offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            let what = format!("{bytes} bytes at {offset} of a field of {}", self.bytes);
            return Err(Error::Invalid { what });
        }
        let event = Arc::new(Event::new(self.render.device(), Wait::Block)?);
        self.wait_before_writing(&self.render)?;
        // SAFETY: the range lies in the field, which is ours until it is handed out, and whose
        // taker waits for the event below.
        unsafe { fill(self.address + offset as u64, bytes, 0, &self.render) }?;
        if let Err(error) = event.record(&self.render) {
            // Nobody could wait for the write otherwise.
            let _ = self.render.synchronize();
            return Err(error);
        }
        self.written(&event);
        Ok(())
    }
}

impl DeviceMemory for Lent {
    fn address(&self) -> u64 {
        self.address
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn zero(&self, offset: usize, bytes: usize) -> Result<(), Fault> {
        self.clear(offset, bytes).map_err(|error| Fault::new(Stage::Transform, error))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(owner) = state.owner.take() {
            self.retired.keep(std::mem::take(&mut state.written), owner);
        }
    }
}

/// How long the last writes are waited for in the end (LIF-1).
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// Memory that nobody will read, until the device is done writing it: freed before, torch would
/// give it to somebody else. What is not written within a second of the end is leaked.
#[derive(Debug, Default)]
pub(crate) struct Retired(Mutex<Vec<Writing>>);

struct Writing {
    events: Vec<Arc<Event>>,
    _owner: Owner,
}

impl std::fmt::Debug for Writing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writing").field("events", &self.events.len()).finish_non_exhaustive()
    }
}

impl Writing {
    /// A device that fails does not write any more.
    fn is_done(&self) -> bool {
        self.events.iter().all(|event| event.query().unwrap_or(true))
    }
}

impl Drop for Retired {
    /// Every field and the backend hold it: nothing is written after this.
    fn drop(&mut self) {
        let deadline = Instant::now() + CLOSE_TIME;
        loop {
            self.sweep();
            if self.lock().is_empty() {
                return;
            }
            if Instant::now() >= deadline {
                return std::mem::forget(std::mem::take(&mut *self.lock()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Retired {
    fn keep(&self, events: Vec<Arc<Event>>, owner: Owner) {
        self.lock().push(Writing { events, _owner: owner });
        self.sweep();
    }

    /// Frees what is done.
    pub(crate) fn sweep(&self) {
        let mut list = self.lock();
        let done: Vec<Writing> = list.extract_if(.., |writing| writing.is_done()).collect();
        drop(list);
        drop(done);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Writing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
