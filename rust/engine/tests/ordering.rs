//! What is delivered, and in which order.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Delivered, Setup, drain};
use forebay_core::order::{Dealing, LastBatch};
use forebay_engine::FeedConfig;

#[test]
fn every_sample_comes_once_per_epoch_and_belongs_to_its_fields() {
    let pipeline = Setup::new(37).workers(2).open();
    let mut orders = Vec::new();
    for epoch in 0..3 {
        pipeline.start_epoch(epoch, 0).unwrap();
        let batches = drain(&pipeline);
        let indices: Vec<u64> = batches.iter().flat_map(|batch| batch.indices.clone()).collect();
        let labels: Vec<u64> = batches
            .iter()
            .flat_map(Delivered::labels)
            .map(|label| u64::try_from(label).unwrap())
            .collect();
        assert_eq!(labels, indices);
        let positions: Vec<u64> =
            batches.iter().flat_map(|batch| batch.positions.clone()).collect();
        assert_eq!(positions, (0..37).collect::<Vec<u64>>(), "ORD-1");
        let mut sorted = indices.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..37).collect::<Vec<u64>>(), "ORD-2");
        orders.push(indices);
    }
    assert!(orders[0] != orders[1] && orders[1] != orders[2]);
}

#[test]
fn ragged_rows_are_joined_in_the_batchs_order() {
    for batch in Setup::new(12).workers(2).epoch(0) {
        let fields = batch.fields.unwrap();
        let (boxes, offsets) = &fields[3];
        let counts = batch.indices.iter().map(|index| i64::try_from(index * 7 % 51).unwrap());
        let expected: Vec<i64> = std::iter::once(0)
            .chain(counts.scan(0, |end, count| {
                *end += count;
                Some(*end)
            }))
            .collect();
        assert_eq!(offsets.as_deref(), Some(expected.as_slice()));
        assert_eq!(boxes.len(), usize::try_from(expected.last().unwrap() * 16).unwrap());
    }
}

#[test]
fn t36_pads_fill_the_last_batch_and_are_not_valid() {
    let mut seen = Vec::new();
    for rank in 0..4 {
        let dealing = Dealing { batch_size: 6, rank, world_size: 4, last_batch: LastBatch::Pad };
        let batches = Setup::new(26).workers(1).dealing(dealing).epoch(0);
        assert_eq!(batches.len(), 2);
        assert_eq!(batches[1].next_position, 26);
        for batch in batches {
            let valid = batch.indices.iter().zip(&batch.valid).filter(|(_, valid)| **valid);
            seen.extend(valid.map(|(index, _)| *index));
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..26).collect::<Vec<u64>>());
}

#[test]
fn pushed_batches_come_in_the_order_in_which_they_were_pushed() {
    let feed = FeedConfig::Pushed { seed: 1, shard: 1, shards: 3 };
    for workers in [0, 2] {
        let pipeline = Setup::new(100).workers(workers).depth(2).feed(feed).open();
        pipeline.start_epoch(0, 0).unwrap();
        assert_eq!(pipeline.wanted_batches(), 3);
        pipeline.push_batch(&[5, 3]).unwrap();
        pipeline.push_batch(&[99]).unwrap();
        assert_eq!(pipeline.wanted_batches(), 1);
        let first = common::next_batch(&pipeline).unwrap();
        assert_eq!((first.indices, first.positions), (vec![5, 3], vec![1, 4]), "RNG-1");
        assert_eq!(pipeline.wanted_batches(), 2);
        assert_eq!(pipeline.progress().next_position, 2);
        pipeline.push_end().unwrap();
        assert_eq!(pipeline.wanted_batches(), 0);
        assert_eq!(drain(&pipeline)[0].positions, [7]);
        let progress = pipeline.progress();
        assert_eq!((progress.epoch, progress.next_position), (1, 0), "RES-1");
    }
}

#[test]
fn pushed_indices_are_checked() {
    let feed = FeedConfig::Pushed { seed: 1, shard: 0, shards: 1 };
    let pipeline = Setup::new(10).feed(feed).open();
    let text = |result: Result<(), forebay_engine::Error>| result.unwrap_err().to_string();
    assert_eq!(text(pipeline.push_batch(&[0])), "no epoch was started");
    pipeline.start_epoch(0, 0).unwrap();
    assert_eq!(text(pipeline.push_batch(&[3, 10])), "index 10 is out of range for 10 samples");
    assert_eq!(text(pipeline.push_batch(&[])), "push_batch: a batch has at least one sample");
    pipeline.push_end().unwrap();
    assert!(text(pipeline.push_batch(&[1])).contains("end was pushed"));
    let ordered = Setup::new(10).open();
    ordered.start_epoch(0, 0).unwrap();
    assert!(text(ordered.push_end()).contains("not pushed batches"));
}

#[test]
fn an_empty_source_ends_at_once() {
    for len in [0, 1] {
        for workers in [0, 2] {
            let batches = Setup::new(len).workers(workers).epoch(0);
            assert_eq!(batches.len() as u64, len);
        }
    }
}
