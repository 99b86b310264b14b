//! The memory budget (MEM-1), as permits that give their bytes back when dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts what the engine holds. Taking happens under the scheduler's lock; giving back anywhere.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    held: AtomicU64,
    peak: AtomicU64,
}

impl Budget {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, held: AtomicU64::new(0), peak: AtomicU64::new(0) })
    }

    pub(crate) fn fits(&self, bytes: u64) -> bool {
        self.held().saturating_add(bytes) <= self.limit
    }

    /// Takes `bytes` if they fit, or if `forced`.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64, forced: bool) -> Option<Permit> {
        if bytes > 0 && !forced && !self.fits(bytes) {
            return None;
        }
        let mut permit = Permit { budget: Arc::clone(self), bytes: 0 };
        permit.resize(bytes);
        Some(permit)
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    pub(crate) fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }
}

/// Bytes that count against the budget.
#[derive(Debug)]
pub(crate) struct Permit {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Permit {
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Corrects an estimate.
    pub(crate) fn resize(&mut self, bytes: u64) {
        let Budget { held, peak, .. } = &*self.budget;
        let before = held.fetch_add(bytes, Ordering::Relaxed);
        held.fetch_sub(self.bytes, Ordering::Relaxed);
        peak.fetch_max(before + bytes - self.bytes, Ordering::Relaxed);
        self.bytes = bytes;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_bound_and_return_their_bytes() {
        let budget = Budget::new(10);
        let mut first = budget.take(6, false).unwrap();
        assert!(budget.take(5, false).is_none(), "MEM-1");
        let forced = budget.take(5, true).unwrap();
        assert!(budget.take(0, false).is_some(), "nothing always fits");
        first.resize(2);
        assert_eq!(budget.held(), 7);
        drop((first, forced));
        assert_eq!((budget.held(), budget.peak()), (0, 11));
    }
}
