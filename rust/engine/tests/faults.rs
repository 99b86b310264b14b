//! ERR-1: bad samples are values, and the policy decides what becomes of them.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Delivered, Setup, drain, next_batch};
use forebay_core::ErrorKind;
use forebay_core::ports::Stage;
use forebay_engine::testing::{Bad, Delivery, FailingRenderer};
use forebay_engine::{FeedConfig, Next, OnError, Pipeline};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const BAD: [(u64, Bad); 5] =
    [(3, Bad::Read), (8, Bad::Header), (17, Bad::Pixels), (18, Bad::Plan), (30, Bad::Render)];
const STAGES: [(u64, Stage); 5] = [
    (3, Stage::Read),
    (8, Stage::Decode),
    (17, Stage::Decode),
    (18, Stage::Transform),
    (30, Stage::Transform),
];

fn epoch(setup: Setup) -> (Vec<Delivered>, Pipeline) {
    let pipeline = setup.open();
    pipeline.start_epoch(0, 0).unwrap();
    (drain(&pipeline), pipeline)
}

/// Index and stage of all failures that are not those of replacements.
fn first_failures(batches: &[Delivered]) -> Vec<(u64, Stage)> {
    let failures = batches.iter().flat_map(|batch| &batch.failures);
    let mut found: Vec<(u64, Stage)> = failures
        .filter(|failure| failure.attempt == 0)
        .inspect(|failure| assert_eq!(failure.key, format!("fake/{}", failure.index)))
        .map(|failure| (failure.index, failure.stage))
        .collect();
    found.sort_by_key(|(index, _)| *index);
    found
}

#[test]
fn t01_raise_names_the_bad_sample_and_the_other_batches_follow() {
    for workers in [0, 2] {
        let (batches, pipeline) = epoch(Setup::new(64).bad([(17, Bad::Pixels)]).workers(workers));
        let (raised, good): (Vec<_>, Vec<_>) =
            batches.iter().partition(|batch| batch.raised.is_some());
        assert_eq!((raised.len(), good.len()), (1, 15));
        let failure = raised[0].raised.as_ref().unwrap();
        assert_eq!((failure.index, failure.stage), (17, Stage::Decode));
        assert!(raised[0].fields.is_none());
        let stats = pipeline.stats();
        assert_eq!((stats.batches, stats.samples), (16, 60), "the batch counts as delivered");
        assert_eq!((stats.bad_samples, stats.dropped_samples), (1, 3));
    }
}

#[test]
fn the_first_bad_sample_by_position_is_raised() {
    let bad = (0..64).map(|index| (index, Bad::Pixels));
    let (batches, _) = epoch(Setup::new(64).bad(bad).workers(2).delivery(Delivery::Shuffled));
    for batch in batches {
        assert_eq!(batch.failures.len(), 4);
        assert_eq!(batch.raised.unwrap().position, batch.positions[0]);
    }
}

#[test]
fn skip_zeroes_the_slot_and_keeps_order_and_length() {
    let (good, _) = epoch(Setup::new(37));
    let (batches, pipeline) = epoch(Setup::new(37).bad(BAD).on_error(OnError::Skip).workers(2));
    assert_eq!(first_failures(&batches), STAGES);
    for (batch, good) in batches.iter().zip(&good) {
        assert_eq!(batch.indices, good.indices);
        assert!(batch.raised.is_none());
        let fields = batch.fields.as_ref().unwrap();
        let good_fields = good.fields.as_ref().unwrap();
        for (slot, index) in batch.indices.iter().enumerate() {
            let bad = BAD.iter().any(|(bad, _)| bad == index);
            assert_eq!(batch.valid[slot], !bad);
            for (field, item) in [(0, 192), (1, 192), (2, 64)] {
                let bytes = &fields[field].0[slot * item..][..item];
                let expected = &good_fields[field].0[slot * item..][..item];
                assert!(if bad { bytes.iter().all(|byte| *byte == 0) } else { bytes == expected });
            }
            let offsets = fields[3].1.as_ref().unwrap();
            if bad {
                assert_eq!(batch.labels()[slot], -100);
                assert_eq!(batch.sizes[slot], [0, 0]);
                assert_eq!(offsets[slot], offsets[slot + 1]);
            } else {
                assert_eq!(batch.sizes[slot], good.sizes[slot]);
            }
        }
    }
    let stats = pipeline.stats();
    assert_eq!((stats.samples, stats.skipped, stats.bad_samples), (32, 5, 5));
}

#[test]
fn replace_fills_the_slot_with_another_sample() {
    let (good, _) = epoch(Setup::new(37));
    let (batches, pipeline) = epoch(Setup::new(37).bad(BAD).on_error(OnError::Replace).workers(2));
    assert_eq!(first_failures(&batches), STAGES);
    for (batch, good) in batches.iter().zip(&good) {
        assert_eq!(batch.positions, good.positions);
        assert!(batch.valid.iter().all(|valid| *valid));
        let labels = batch.labels();
        for (slot, &index) in batch.indices.iter().enumerate() {
            assert!(BAD.iter().all(|(bad, _)| *bad != index));
            assert_eq!(u64::try_from(labels[slot]).unwrap(), index);
        }
    }
    let stats = pipeline.stats();
    assert_eq!((stats.samples, stats.replaced), (37, 5));
}

#[test]
fn replace_gives_up_after_eight_attempts() {
    let feed = FeedConfig::Pushed { seed: 3, shard: 0, shards: 1 };
    for feed in [None, Some(feed)] {
        let bad = (0..4).map(|index| (index, Bad::Header));
        let mut setup = Setup::new(4).bad(bad).on_error(OnError::Replace).workers(1);
        setup.config.feed = feed.unwrap_or(setup.config.feed);
        let pipeline = setup.open();
        pipeline.start_epoch(0, 0).unwrap();
        if feed.is_some() {
            pipeline.push_batch(&[0, 1, 2, 3]).unwrap();
        }
        let batch = next_batch(&pipeline).unwrap();
        assert_eq!(batch.failures.len(), 4 * 9);
        let attempts: Vec<u16> = batch.failures.iter().map(|failure| failure.attempt).collect();
        assert_eq!(attempts[..9], [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(batch.raised().unwrap().attempt, 0);
        assert!(batch.slab.is_none());
    }
}

#[test]
fn too_many_bad_samples_end_the_pipeline() {
    for workers in [0, 2] {
        let mut setup = Setup::new(37).bad(BAD).on_error(OnError::Skip).workers(workers);
        setup.config.max_errors = Some(2);
        let pipeline = setup.open();
        pipeline.start_epoch(0, 0).unwrap();
        let mut delivered = 0;
        let error = loop {
            match pipeline.next(Duration::from_millis(50)) {
                Ok(Next::Batch(batch)) => delivered = batch.next_position,
                Ok(Next::Pending) => {}
                Ok(Next::End) => panic!("the epoch ended in spite of max_errors"),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Data);
        assert!(error.to_string().contains("max_errors=2"), "{error}");
        assert_eq!(pipeline.progress().next_position, delivered, "RES-1");
        let again = pipeline.next(Duration::ZERO).unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
    }
}

#[test]
fn a_panic_poisons_the_pipeline_and_close_still_joins() {
    for workers in [0, 2] {
        let pipeline = Setup::new(64).bad([(17, Bad::Panic)]).workers(workers).open();
        pipeline.start_epoch(0, 0).unwrap();
        let error = loop {
            match pipeline.next(Duration::from_millis(50)) {
                Ok(Next::End) => panic!("the epoch ended in spite of a panic"),
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert!(error.to_string().contains("the fake decoder panics"), "{error}");
        let again = pipeline.next(Duration::ZERO).unwrap_err();
        assert_eq!(again.to_string(), error.to_string());
        assert_eq!(pipeline.start_epoch(1, 0).unwrap_err().kind(), ErrorKind::Internal);
        pipeline.close();
        assert_eq!(pipeline.stats().threads_left, 0);
    }
}

#[test]
fn a_renderer_that_fails_is_no_samples_fault() {
    for workers in [0, 2] {
        let renderer = Arc::new(FailingRenderer { left: AtomicUsize::new(40), fails: true });
        let setup = Setup::new(64).on_error(OnError::Skip).workers(workers);
        let pipeline = setup.renderer(renderer).open();
        pipeline.start_epoch(0, 0).unwrap();
        let mut samples = 0;
        let error = loop {
            match pipeline.next(Duration::from_millis(50)) {
                Ok(Next::End) => panic!("the epoch ended on a full device"),
                Ok(Next::Batch(batch)) => samples += batch.indices.len(),
                Ok(Next::Pending) => {}
                Err(error) => break error,
            }
        };
        assert!(samples <= 40 / 3, "three images each");
        assert_eq!(error.kind(), ErrorKind::Device);
        assert_eq!(error.to_string(), "the fake device is full");
        assert_eq!(pipeline.stats().skipped, 0);
        assert_eq!(pipeline.next(Duration::ZERO).unwrap_err().kind(), ErrorKind::Device);
    }
}

#[test]
fn a_device_without_memory_is_told_once_and_nothing_is_lost() {
    let expected = epoch(Setup::new(64)).0;
    for workers in [0, 2] {
        let renderer = Arc::new(FailingRenderer { left: AtomicUsize::new(40), fails: false });
        let setup = Setup::new(64).workers(workers).renderer(Arc::clone(&renderer) as _);
        let pipeline = setup.open();
        pipeline.start_epoch(0, 0).unwrap();
        let (mut got, mut errors) = (Vec::new(), 0);
        loop {
            match pipeline.next(Duration::from_millis(50)) {
                Ok(Next::End) => break,
                Ok(Next::Batch(batch)) => got.push(Delivered::from(&*batch)),
                Ok(Next::Pending) => {}
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::DeviceMemory);
                    errors += 1;
                    if errors > 2 {
                        renderer.left.fetch_add(70, Ordering::Relaxed);
                    }
                }
            }
        }
        assert_eq!(got, expected);
        assert!((3..64).contains(&errors), "{errors} errors");
        assert_eq!(pipeline.stats().held_bytes, 0);
    }
}
