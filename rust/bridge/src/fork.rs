//! Forks: which process an object belongs to.
//!
//! A forked child has our objects but none of our threads, and locks may be held for ever by
//! threads that are not there. So whoever is about to take a lock first compares the number of
//! forks that the process has been through (LIF-1).

use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

static FORKS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Number of forks between the first process that loaded us and this one.
pub(crate) fn generation() -> u64 {
    static REGISTER: Once = Once::new();
    // `Once` is no lock that a fork could leave held: it is done before any thread of ours starts.
    REGISTER.call_once(|| {
        // SAFETY: the handler only adds to an atomic, which is async-signal-safe; it is a function
        // of this library, which is never unloaded (torch keeps op libraries for good).
        let status = unsafe { libc::pthread_atfork(None, None, Some(count_fork)) };
        assert_eq!(status, 0, "pthread_atfork failed with status {status}");
    });
    FORKS.load(Ordering::Relaxed)
}
