//! LIF-1: which threads there are. Threads belong to the process, so this test has one of its own:
//! it must stay the only one in its file.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{STUCK, Setup, next_batch};
use forebay_core::ErrorKind;
use std::time::{Duration, Instant};

fn threads_named_forebay() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
    let names = tasks.flatten().filter_map(|task| name(task).ok());
    names.filter(|name| name.starts_with("forebay-")).count()
}

/// Waits, as threads name themselves a moment after their start and leave the kernel's list a
/// moment after their end.
fn threads_become(expected: usize) -> bool {
    let started = Instant::now();
    while threads_named_forebay() != expected && started.elapsed() < STUCK {
        std::thread::yield_now();
    }
    threads_named_forebay() == expected
}

#[test]
fn threads_start_at_the_first_next_and_are_gone_after_close() {
    let inline = Setup::new(8).open();
    inline.start_epoch(0, 0).unwrap();
    while next_batch(&inline).is_some() {}
    assert_eq!(threads_named_forebay(), 0, "without workers there are no threads at all");

    let pipeline = Setup::new(200).workers(3).open();
    pipeline.start_epoch(0, 0).unwrap();
    assert_eq!(threads_named_forebay(), 0);
    next_batch(&pipeline).unwrap();
    assert!(threads_become(3 + 4));
    pipeline.close();
    pipeline.close();
    assert_eq!(pipeline.stats().threads_left, 0);
    assert!(threads_become(0));
    assert_eq!(pipeline.next(Duration::ZERO).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(pipeline.start_epoch(0, 0).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(pipeline.wanted_batches(), 0);
}
