//! The atomics that loom replaces, and a witness that shows it accesses behind raw pointers.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

/// Stands for one slot's bytes: loom reports every pair of accesses that nothing orders.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    #[cfg(loom)]
    cell: loom::cell::UnsafeCell<()>,
}

#[cfg_attr(
    not(loom),
    expect(clippy::unused_self, reason = "only loom's witness has anything to say")
)]
impl Witness {
    /// The bytes are about to be written.
    pub(crate) fn write(&self) {
        #[cfg(loom)]
        self.cell.with_mut(|_| ());
    }

    /// The bytes are about to be read.
    pub(crate) fn read(&self) {
        #[cfg(loom)]
        self.cell.with(|_| ());
    }
}

// SAFETY: the cell holds nothing; loom checks the accesses that it stands for.
#[cfg(loom)]
unsafe impl Sync for Witness {}
