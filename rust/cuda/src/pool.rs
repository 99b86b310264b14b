//! Scratch memory that is reused: on the device, and page-locked on the host.
//!
//! **Invariants**
//! - No loan waits for another to come back, which it might be what is waited for: what is lent is
//!   bounded by the engine's budget (MEM-1), what is kept for later by the pool's limit.
//! - A buffer is lent again only when all events that it was given back with have come.

use crate::Error;
use crate::driver::{Device, DeviceBuffer, Event, PinnedBuffer};
use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The smallest buffer: smaller requests share a size.
const SMALLEST: usize = 64 << 10;
/// A buffer may be this much larger than what is asked for. Batches of one pipeline need about as
/// much as each other and never the same; a new size would mean to free others, which waits for
/// the whole device.
const LARGEST_WASTE: usize = 2;

/// Memory that a pool lends.
pub(crate) trait Buffer: Sized + Send + fmt::Debug {
    /// Allocates.
    fn new(device: &Arc<Device>, bytes: usize) -> Result<Self, Error>;
}

impl Buffer for DeviceBuffer {
    fn new(device: &Arc<Device>, bytes: usize) -> Result<Self, Error> {
        Self::new(device, bytes)
    }
}

impl Buffer for PinnedBuffer {
    fn new(device: &Arc<Device>, bytes: usize) -> Result<Self, Error> {
        Self::new(device, bytes)
    }
}

/// Buffers of some sizes.
#[derive(Debug)]
pub(crate) struct Pool<B> {
    device: Arc<Device>,
    state: Mutex<State<B>>,
}

#[derive(Debug)]
struct State<B> {
    /// In the order in which they came back.
    free: VecDeque<Free<B>>,
    /// Bytes of all buffers, lent ones included.
    held: usize,
    /// Beyond it buffers of other sizes are freed for a new one.
    limit: usize,
}

#[derive(Debug)]
struct Free<B> {
    buffer: B,
    bytes: usize,
    after: Vec<Arc<Event>>,
}

impl<B> Free<B> {
    /// Waits for the device. One that fails uses nothing any more.
    fn finish(&self) {
        for event in &self.after {
            let _ = event.synchronize();
        }
    }

    /// `pending` are events that had not come a moment ago: many buffers wait for the same.
    fn is_done(&self, pending: &mut Vec<*const Event>) -> Result<bool, Error> {
        for event in &self.after {
            if pending.contains(&Arc::as_ptr(event)) {
                return Ok(false);
            }
            if !event.query()? {
                pending.push(Arc::as_ptr(event));
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What to do without a buffer at hand.
enum Missing<B> {
    Allocate,
    /// Buffers of other sizes make room first.
    Shrink(Vec<Free<B>>),
    /// This one is being used by the device.
    WaitFor(Free<B>),
}

impl<B: Buffer> Pool<B> {
    pub(crate) fn new(device: &Arc<Device>, limit: usize) -> Arc<Self> {
        let state = State { free: VecDeque::new(), held: 0, limit };
        Arc::new(Self { device: Arc::clone(device), state: Mutex::new(state) })
    }

    /// At least `bytes` bytes of any contents.
    ///
    /// # Errors
    /// There is not enough memory, even without what is free here, or the device failed.
    pub(crate) fn loan(self: &Arc<Self>, bytes: usize) -> Result<Loan<B>, Error> {
        let bytes = bytes.max(SMALLEST);
        let size = rounded(bytes);
        loop {
            let mut state = self.lock();
            if let Some(place) = find(&state.free, bytes)? {
                let free = state.free.remove(place).expect("just found");
                return Ok(self.lend(free.buffer, free.bytes));
            }
            match missing(&mut state, bytes, size) {
                Missing::Allocate => {}
                Missing::Shrink(surplus) => {
                    drop(state);
                    surplus.iter().for_each(Free::finish);
                    continue;
                }
                Missing::WaitFor(free) => {
                    drop(state);
                    let done = free.after.iter().try_for_each(|event| event.synchronize());
                    self.lock().free.push_front(free);
                    done?;
                    continue;
                }
            }
            state.held += size;
            drop(state);
            match B::new(&self.device, size) {
                Ok(buffer) => return Ok(self.lend(buffer, size)),
                Err(error) => {
                    self.lock().held -= size;
                    if !self.release() {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Gives all that is free back to the device, for which others have more use, and keeps no more
    /// than is lent from now on. False if nothing is free.
    pub(crate) fn release(&self) -> bool {
        let mut state = self.lock();
        let free = std::mem::take(&mut state.free);
        state.held -= free.iter().map(|free| free.bytes).sum::<usize>();
        state.limit = state.limit.min(state.held);
        drop(state);
        free.iter().for_each(Free::finish);
        !free.is_empty()
    }

    fn lend(self: &Arc<Self>, buffer: B, bytes: usize) -> Loan<B> {
        let pool = Arc::clone(self);
        Loan { buffer: Some(buffer), bytes, after: Mutex::default(), pool }
    }

    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<B> Drop for Pool<B> {
    fn drop(&mut self) {
        // The driver frees page-locked memory even while it is being read.
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        state.free.iter().for_each(Free::finish);
    }
}

/// The smallest buffer that suits and that the device is done with.
fn find<B>(free: &VecDeque<Free<B>>, bytes: usize) -> Result<Option<usize>, Error> {
    let mut best: Option<usize> = None;
    let mut pending = Vec::new();
    for (place, candidate) in free.iter().enumerate() {
        let is_better = best.is_none_or(|best| candidate.bytes < free[best].bytes);
        if suits(candidate, bytes) && is_better && candidate.is_done(&mut pending)? {
            best = Some(place);
        }
    }
    Ok(best)
}

fn suits<B>(free: &Free<B>, bytes: usize) -> bool {
    (bytes..=bytes.saturating_mul(LARGEST_WASTE)).contains(&free.bytes)
}

fn missing<B>(state: &mut State<B>, bytes: usize, size: usize) -> Missing<B> {
    if state.held + size <= state.limit {
        return Missing::Allocate;
    }
    if let Some(place) = state.free.iter().position(|free| suits(free, bytes)) {
        return Missing::WaitFor(state.free.remove(place).expect("just found"));
    }
    let mut surplus = Vec::new();
    while state.held + size > state.limit
        && let Some(free) = state.free.pop_front()
    {
        state.held -= free.bytes;
        surplus.push(free);
    }
    if surplus.is_empty() { Missing::Allocate } else { Missing::Shrink(surplus) }
}

/// Quarters of powers of two, so that the next request of about this size fits.
fn rounded(bytes: usize) -> usize {
    bytes.next_multiple_of((bytes.next_power_of_two() / 8).max(1))
}

/// A lent buffer; goes back when dropped.
#[derive(Debug)]
pub(crate) struct Loan<B: Buffer> {
    buffer: Option<B>,
    bytes: usize,
    after: Mutex<Vec<Arc<Event>>>,
    pool: Arc<Pool<B>>,
}

impl<B: Buffer> Loan<B> {
    /// Nobody else gets it before `event` has come.
    pub(crate) fn use_until(&self, event: &Arc<Event>) {
        self.after.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(event));
    }
}

impl<B: Buffer> std::ops::Deref for Loan<B> {
    type Target = B;

    fn deref(&self) -> &B {
        self.buffer.as_ref().expect("until it is dropped")
    }
}

impl<B: Buffer> std::ops::DerefMut for Loan<B> {
    fn deref_mut(&mut self) -> &mut B {
        self.buffer.as_mut().expect("until it is dropped")
    }
}

impl<B: Buffer> Drop for Loan<B> {
    fn drop(&mut self) {
        let after = std::mem::take(self.after.get_mut().unwrap_or_else(PoisonError::into_inner));
        if let Some(buffer) = self.buffer.take() {
            self.pool.lock().free.push_back(Free { buffer, bytes: self.bytes, after });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_lose_a_quarter_at_most() {
        for bytes in [SMALLEST, 70_000, 100_000, 1 << 20, (1 << 20) + 1, 77_777_777] {
            let size = rounded(bytes);
            assert!(size >= bytes && size - bytes <= bytes / 4, "{bytes} -> {size}");
            assert_eq!(rounded(size), size);
        }
    }

    fn free(bytes: usize) -> Free<()> {
        Free { buffer: (), bytes, after: Vec::new() }
    }

    #[test]
    fn the_smallest_buffer_that_suits_is_lent() {
        let buffers: VecDeque<Free<()>> = [100, 300, 150, 90].map(free).into();
        let found = |bytes| find(&buffers, bytes).unwrap().map(|place| buffers[place].bytes);
        assert_eq!(found(95), Some(100));
        assert_eq!(found(120), Some(150));
        assert_eq!(found(160), Some(300));
        assert_eq!(found(301), None);
        assert_eq!(found(40), None, "all are too large");
    }

    #[test]
    fn beyond_the_limit_buffers_are_waited_for_or_freed_but_no_loan_is_refused() {
        let state = |free: Vec<Free<()>>, held| State { free: free.into(), held, limit: 1000 };
        let missing = |mut state, bytes| missing(&mut state, bytes, bytes);
        assert!(matches!(missing(state(vec![], 500), 500), Missing::Allocate));
        let waits = missing(state(vec![free(600)], 900), 500);
        assert!(matches!(waits, Missing::WaitFor(free) if free.bytes == 600));
        let shrinks = missing(state(vec![free(100), free(200), free(300)], 900), 350);
        assert!(matches!(shrinks, Missing::Shrink(surplus) if surplus.len() == 2));
        assert!(matches!(missing(state(vec![], 900), 500), Missing::Allocate), "all is lent");
    }
}
