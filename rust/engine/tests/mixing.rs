//! Images of a batch are mixed with each other once all of them are there, and no sooner.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Delivered, Setup, drain};
use forebay_engine::testing::{
    Bad, BatchRenderer, Delivery, FailingRenderer, FakeDecoder, Pace, PixelRoute,
};
use forebay_engine::{Error, Next, OnError};
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

const IMAGES: [usize; 2] = [0, 1];
const REST: [usize; 3] = [2, 3, 4];

/// What the fake renderer makes of a batch that was not mixed: every image plus its partner, in a
/// ring of the good ones.
fn mixed(batch: &Delivered, field: usize, mixes: usize) -> Vec<u8> {
    let (mut bytes, _) = batch.fields.as_ref().unwrap()[field].clone();
    let item = bytes.len() / batch.indices.len();
    let good: Vec<usize> = (0..batch.valid.len()).filter(|&slot| batch.valid[slot]).collect();
    for _ in 0..mixes {
        let before = bytes.clone();
        for (place, slot) in good.iter().enumerate() {
            let other = good[(place + good.len() - 1) % good.len()];
            for byte in 0..item {
                let sum = before[slot * item + byte].wrapping_add(before[other * item + byte]);
                bytes[slot * item + byte] = sum;
            }
        }
    }
    bytes
}

fn check(plain: &[Delivered], batches: &[Delivered], mixes: usize) {
    assert_eq!(plain.len(), batches.len());
    for (plain, batch) in plain.iter().zip(batches) {
        assert_eq!(batch.indices, plain.indices);
        if plain.fields.is_none() {
            assert_eq!(batch.fields, None);
            continue;
        }
        let fields = |batch: &Delivered| batch.fields.clone().unwrap();
        for field in IMAGES {
            assert_eq!(fields(batch)[field].0, mixed(plain, field, mixes), "field {field}");
        }
        for field in REST {
            assert_eq!(fields(batch)[field], fields(plain)[field], "field {field}");
        }
        assert_eq!(batch.weights.len(), mixes);
        let good: Vec<usize> = (0..plain.valid.len()).filter(|&slot| plain.valid[slot]).collect();
        for (place, &slot) in good.iter().enumerate() {
            let before = good[(place + good.len() - 1) % good.len()];
            assert_eq!(batch.partners[slot], Some(before));
        }
        assert_eq!(batch.partners.iter().flatten().count(), good.len());
    }
}

#[test]
fn every_image_meets_the_one_before_it_whatever_the_threads() {
    let plain = Setup::new(30).epoch(0);
    for workers in [0, 1, 4] {
        for mixes in [1, 2] {
            let decoder = FakeDecoder {
                pace: Pace::Uneven(Duration::from_millis(2)),
                ..FakeDecoder::new(PixelRoute::Host)
            };
            let setup = Setup::new(30).workers(workers).decoder(decoder).mixing(mixes);
            let batches = setup.delivery(Delivery::Shuffled).epoch(0);
            check(&plain, &batches, mixes as usize);
        }
    }
}

#[test]
fn renderers_of_batches_and_devices_mix_too() {
    let plain = Setup::new(30).epoch(0);
    let renderer = || Arc::new(BatchRenderer::new(4, Duration::from_millis(1)));
    let batches = Setup::new(30).workers(3).renderer(renderer()).mixing(1).epoch(0);
    check(&plain, &batches, 1);
    let batches = Setup::new(30).on_device().workers(3).renderer(renderer()).mixing(1).epoch(0);
    check(&plain, &batches, 1);
}

#[test]
fn skipped_samples_are_left_out_of_the_ring() {
    let bad =
        [(3, Bad::Read), (8, Bad::Header), (17, Bad::Pixels), (18, Bad::Render), (19, Bad::Plan)];
    let setup = || Setup::new(30).bad(bad).on_error(OnError::Skip);
    let plain = setup().epoch(0);
    for workers in [0, 3] {
        check(&plain, &setup().workers(workers).mixing(2).epoch(0), 2);
    }
    // Nothing but bad ones.
    let all =
        || Setup::new(4).bad((0..4).map(|index| (index, Bad::Pixels))).on_error(OnError::Skip);
    check(&all().epoch(0), &all().mixing(1).epoch(0), 1);
}

#[test]
fn a_batch_with_an_error_is_not_mixed_and_the_next_one_is() {
    let setup = || Setup::new(30).bad([(5, Bad::Pixels)]);
    for workers in [0, 3] {
        let batches = setup().workers(workers).mixing(1).epoch(0);
        assert_eq!(batches.iter().filter(|batch| batch.raised.is_some()).count(), 1);
        check(&setup().epoch(0), &batches, 1);
    }
}

#[test]
fn rng_1_weights_depend_on_the_first_position_alone() {
    let weights = |batches: &[Delivered]| -> Vec<(u64, Vec<f64>)> {
        batches.iter().map(|batch| (batch.positions[0], batch.weights.clone())).collect()
    };
    let all = weights(&Setup::new(30).mixing(1).epoch(3));
    assert!(all.windows(2).all(|pair| pair[0].1 != pair[1].1), "{all:?}");
    assert_eq!(weights(&Setup::new(30).workers(3).mixing(1).epoch(3)), all);
    let pipeline = Setup::new(30).mixing(1).open();
    pipeline.start_epoch(3, 8).unwrap();
    assert_eq!(weights(&drain(&pipeline)), all[2..]);
}

#[test]
fn a_renderer_that_cannot_mix_ends_the_pipeline() {
    let renderer = FailingRenderer { left: AtomicUsize::new(usize::MAX), fails: true };
    let pipeline = Setup::new(30).workers(2).renderer(Arc::new(renderer)).mixing(1).open();
    pipeline.start_epoch(0, 0).unwrap();
    let error = loop {
        match pipeline.next(Duration::from_millis(50)) {
            Ok(Next::Pending) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Backend { .. }), "{error:?}");
}
