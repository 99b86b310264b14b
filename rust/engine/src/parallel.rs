//! Work without a pipeline: a list of items, each done once, by threads that end with the call.

use crate::Error;
use crate::worker::panicked;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// Calls `job` with each item, from up to `threads` threads, the calling one among them; returns
/// when all are done. Starting a thread costs some 30 microseconds, a fraction of one image.
///
/// # Errors
/// A job panicked (the others are done all the same).
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// let sum = AtomicU64::new(0);
/// forebay_engine::for_each(4, vec![1, 2, 3], |n: u64| {
///     sum.fetch_add(n, Ordering::Relaxed);
/// })
/// .unwrap();
/// assert_eq!(sum.into_inner(), 6);
/// ```
pub fn for_each<T: Send>(
    threads: usize,
    items: Vec<T>,
    job: impl Fn(T) + Sync,
) -> Result<(), Error> {
    let extra = threads.min(items.len()).saturating_sub(1);
    let items = Mutex::new(items.into_iter());
    let failure = Mutex::new(None);
    let work = || {
        loop {
            let next = items.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some(item) = next else { return };
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| job(item))) {
                let error = panicked("working on an item", &*payload);
                failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    std::thread::scope(|scope| {
        for number in 0..extra {
            let thread = std::thread::Builder::new().name(format!("forebay-op-{number}"));
            // A system that has no thread to give leaves the work to those that there are.
            if thread.spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn every_item_is_done_once_at_any_number_of_threads() {
        for threads in [0, 1, 2, 7, 100] {
            let done: Vec<AtomicUsize> = (0..50).map(|_| AtomicUsize::new(0)).collect();
            for_each(threads, (0..50).collect(), |i: usize| {
                done[i].fetch_add(1, Ordering::Relaxed);
            })
            .unwrap();
            assert!(done.iter().all(|count| count.load(Ordering::Relaxed) == 1));
        }
        for_each(4, Vec::new(), |(): ()| panic!("there is nothing to do")).unwrap();
    }

    #[test]
    fn a_panic_is_an_error_after_the_rest_is_done() {
        let done = AtomicUsize::new(0);
        let outcome = for_each(3, (0..20).collect(), |i: usize| {
            assert!(i != 7, "seven");
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert!(outcome.unwrap_err().to_string().contains("seven"));
        assert_eq!(done.into_inner(), 19);
    }
}
