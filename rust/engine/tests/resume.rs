//! RES-1: going on from any position is the same as never having stopped.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Setup, drain, next_batch};
use forebay_core::order::{Dealing, LastBatch};
use forebay_engine::testing::{Bad, Delivery};
use forebay_engine::{FeedConfig, OnError, Progress};

fn setup(workers: usize) -> Setup {
    Setup::new(43)
        .bad([(5, Bad::Pixels), (6, Bad::Read), (40, Bad::Render)])
        .on_error(OnError::Replace)
        .workers(workers)
        .delivery(Delivery::Shuffled)
}

#[test]
fn t45_resume_after_any_batch_equals_uninterrupted() {
    let whole = setup(2).epoch(2);
    for stop in 0..whole.len() {
        let before = setup(2).open();
        before.start_epoch(2, 0).unwrap();
        for _ in 0..stop {
            next_batch(&before).unwrap();
        }
        let Progress { epoch, next_position } = before.progress();
        drop(before);
        let after = setup(1).open();
        after.start_epoch(epoch, next_position).unwrap();
        assert_eq!(drain(&after), whole[stop..], "after {stop} batches");
    }
}

#[test]
fn after_the_last_batch_the_next_epoch_is_due() {
    for (last_batch, world_size) in
        [(LastBatch::Drop, 2), (LastBatch::Partial, 1), (LastBatch::Pad, 2)]
    {
        let dealing = Dealing { batch_size: 4, rank: world_size - 1, world_size, last_batch };
        let pipeline = setup(2).dealing(dealing).open();
        pipeline.start_epoch(4, 0).unwrap();
        let batches = drain(&pipeline);
        assert_eq!(batches.len() as u64, dealing.batches(43, 0), "ORD-3");
        let expected = Progress { epoch: 5, next_position: 0 };
        assert_eq!(pipeline.progress(), expected);
        pipeline.close();
        assert_eq!(pipeline.progress(), expected, "closing forgets nothing");
    }
}

#[test]
fn progress_speaks_of_batches_handed_out() {
    let pipeline = setup(2).open();
    pipeline.start_epoch(0, 8).unwrap();
    assert_eq!(pipeline.progress().next_position, 8);
    next_batch(&pipeline).unwrap();
    let expected = Progress { epoch: 0, next_position: 12 };
    assert_eq!(pipeline.progress(), expected, "prefetched batches do not count");
    assert!(pipeline.start_epoch(0, 44).is_err());
}

#[test]
fn t46_resuming_reads_no_more_than_what_is_in_flight() {
    let (pipeline, source) = Setup::new(1_000_000).workers(2).depth(3).open_with_source();
    pipeline.start_epoch(0, 900_000).unwrap();
    next_batch(&pipeline).unwrap();
    pipeline.close();
    assert!(source.requested() <= 4 * 4, "{} records", source.requested());
}

#[test]
fn pushed_feeds_go_on_from_a_local_ordinal() {
    let feed = FeedConfig::Pushed { seed: 9, shard: 2, shards: 5 };
    let batches: Vec<Vec<u64>> = vec![vec![4, 1], vec![7], vec![2, 3, 5], vec![9]];
    let run = |start: usize, position: u64| {
        let pipeline = setup(2).feed(feed).open();
        pipeline.start_epoch(0, position).unwrap();
        for batch in &batches[start..] {
            pipeline.push_batch(batch).unwrap();
        }
        pipeline.push_end().unwrap();
        drain(&pipeline)
    };
    let whole = run(0, 0);
    for start in 1..batches.len() {
        let position = whole[start - 1].next_position;
        assert_eq!(run(start, position), whole[start..]);
    }
}
