//! Handles: how C++ and Python name a pipeline without holding a pointer.
//!
//! A handle is three numbers, {magic, slot, generation}. They are looked up, never followed, so a
//! copy, a pickle or a handle made up by hand is harmless.

use crate::fork;
use crate::guard::Error;
use forebay_core::ErrorKind;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const MAGIC: i64 = 0x0046_4f52_4542_4159; // "FOREBAY"

/// What a handle stands for.
pub(crate) struct Table<T: 'static> {
    /// What messages call it.
    called: &'static str,
    current: AtomicPtr<Entries<T>>,
}

struct Entries<T> {
    forks: u64,
    slots: Mutex<Slots<T>>,
}

struct Slots<T> {
    last: i64,
    /// Generation and value by slot.
    filled: HashMap<i64, (i64, Arc<T>)>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { last: 0, filled: HashMap::new() }
    }
}

impl<T> Table<T> {
    pub(crate) const fn new(called: &'static str) -> Self {
        Self { called, current: AtomicPtr::new(std::ptr::null_mut()) }
    }

    /// This process's entries. Those of a parent process are left alone for good: their lock may
    /// be held by a thread that did not survive the fork.
    fn entries(&self) -> &'static Entries<T> {
        let forks = fork::generation();
        let known = self.current.load(Ordering::Acquire);
        // SAFETY: the pointer is null or came from `Box::leak` below, so it is valid for ever.
        match unsafe { known.as_ref() } {
            Some(entries) if entries.forks == forks => entries,
            _ => {
                let fresh = Box::leak(Box::new(Entries { forks, slots: Mutex::default() }));
                let swapped = self.current.compare_exchange(
                    known,
                    fresh,
                    Ordering::AcqRel,
                    Ordering::Acquire,
                );
                match swapped {
                    Ok(_) => fresh,
                    Err(_) => self.entries(),
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'static, Slots<T>> {
        self.entries().slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps `value` and names it.
    pub(crate) fn insert(&self, value: T) -> [i64; 3] {
        let generation = random();
        let mut slots = self.lock();
        slots.last += 1;
        let slot = slots.last;
        slots.filled.insert(slot, (generation, Arc::new(value)));
        [MAGIC, slot, generation]
    }

    /// What `handle` names.
    pub(crate) fn get(&self, handle: &[i64]) -> Result<Arc<T>, Error> {
        let (slot, generation) = self.parse(handle)?;
        match self.lock().filled.get(&slot) {
            Some((known, value)) if *known == generation => Ok(Arc::clone(value)),
            _ => Err(Error::new(
                ErrorKind::Closed,
                format!(
                    "the {} is closed, or was opened before this process was forked; \
                     iterate the loader anew",
                    self.called
                ),
            )),
        }
    }

    /// Forgets what `handle` names; `None` if that has happened already or in another process.
    pub(crate) fn remove(&self, handle: &[i64]) -> Result<Option<Arc<T>>, Error> {
        let (slot, generation) = self.parse(handle)?;
        let mut slots = self.lock();
        if slots.filled.get(&slot).is_some_and(|(known, _)| *known == generation) {
            return Ok(slots.filled.remove(&slot).map(|(_, value)| value));
        }
        Ok(None)
    }

    fn parse(&self, handle: &[i64]) -> Result<(i64, i64), Error> {
        match handle {
            [MAGIC, slot, generation] => Ok((*slot, *generation)),
            _ => Err(Error::new(
                ErrorKind::Type,
                format!("expected a {} handle, got another tensor", self.called),
            )),
        }
    }
}

/// A number that nobody guesses; the seed of std's hash maps comes from the operating system.
fn random() -> i64 {
    std::hash::RandomState::new().build_hasher().finish().cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_looked_up_not_trusted() {
        static TABLE: Table<&str> = Table::new("scan");
        let handle = TABLE.insert("it");
        assert_eq!(TABLE.get(&handle).map(|value| *value), Ok("it"));
        let [magic, slot, generation] = handle;
        for wrong in [[magic, slot, generation ^ 1], [magic, slot + 1, generation]] {
            assert!(TABLE.get(&wrong).unwrap_err().to_string().starts_with("C:"));
        }
        assert_eq!(
            TABLE.get(&[1, 2, 3]).unwrap_err().to_string(),
            "T:expected a scan handle, got another tensor"
        );
        assert!(TABLE.get(&[]).is_err());
        assert_eq!(TABLE.remove(&handle).unwrap().as_deref(), Some(&"it"));
        assert_eq!(TABLE.remove(&handle), Ok(None));
        assert!(TABLE.get(&handle).is_err());
    }
}
