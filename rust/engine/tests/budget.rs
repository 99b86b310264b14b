//! MEM-1: what the engine holds is bounded, and the bound never stops it.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Delivered, Setup, drain, engines, next_batch};
use forebay_core::ErrorKind;
use forebay_engine::Next;
use forebay_engine::testing::{BatchRenderer, Delivery, FakeDecoder, FakeRenderer, PixelRoute};
use forebay_slab::{Allocator, Block, Error, Pageable};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes of a batch of four: two images, a mask and a label each.
const SLAB: u64 = 4 * (192 + 192 + 64 + 8);
/// Three images of less than twice `image_bytes`, 50 boxes, and pixels.
const SAMPLE: u64 = 3 * 2 * 1_000 + 50 * 16 + 3 * FOOTPRINT;
const FOOTPRINT: u64 = 3_000;

fn setup(budget: u64) -> Setup {
    let mut setup = Setup::new(61)
        .workers(3)
        .depth(4)
        .budget(budget)
        .delivery(Delivery::Shuffled)
        .decoder(FakeDecoder { footprint: FOOTPRINT, ..FakeDecoder::new(PixelRoute::Host) });
    setup.image_bytes = 1_000;
    setup
}

#[test]
fn what_is_held_stays_within_the_budget_and_one_sample() {
    for budget in [3 * SLAB, 4 * SAMPLE, 20 * SAMPLE] {
        let pipeline = setup(budget).open();
        for epoch in 0..3 {
            pipeline.start_epoch(epoch, 0).unwrap();
            assert_eq!(drain(&pipeline).len(), 16);
        }
        let stats = pipeline.stats();
        assert!(stats.peak_bytes <= budget + SAMPLE, "{stats:?}, budget {budget}");
        assert_eq!(stats.held_bytes, 0, "nothing grows");
    }
}

#[test]
fn a_budget_of_one_byte_processes_one_sample_at_a_time() {
    for group in [1, 64] {
        let renderer = Arc::new(BatchRenderer::new(group, Duration::ZERO));
        let pipeline = setup(1).renderer(renderer).open();
        pipeline.start_epoch(0, 0).unwrap();
        assert_eq!(drain(&pipeline).len(), 16);
        let peak = pipeline.stats().peak_bytes;
        assert!(peak <= SLAB + SAMPLE, "{peak} bytes");
    }
}

/// A renderer of whole batches waits for the last image, whose read may be put off for want of room.
#[test]
fn a_read_that_is_put_off_lets_the_rest_go_on() {
    for budget in (1..12).map(|parts| SLAB + parts * SAMPLE / 3) {
        let engine =
            FakeDecoder { engines: Some(engines(1_000)), ..FakeDecoder::new(PixelRoute::Host) };
        let renderer = Arc::new(BatchRenderer::new(1_000, Duration::ZERO));
        let mut setup = setup(budget).renderer(renderer);
        setup.decoders.push(Arc::new(engine));
        let pipeline = setup.open();
        for epoch in 0..4 {
            pipeline.start_epoch(epoch, 0).unwrap();
            if epoch == 1 {
                next_batch(&pipeline).unwrap();
                continue;
            }
            assert_eq!(drain(&pipeline).len(), 16, "budget {budget}");
        }
        assert_eq!(pipeline.stats().held_bytes, 0, "nothing of an epoch that was left is held");
    }
}

#[test]
fn the_budget_bounds_the_batches_in_flight() {
    let (pipeline, source) = setup(2 * SLAB + SLAB / 2).open_with_source();
    pipeline.start_epoch(0, 0).unwrap();
    let batches: Vec<_> = std::iter::from_fn(|| next_batch(&pipeline)).collect();
    assert_eq!(batches.len(), 16, "batches that the user keeps do not block");
    assert_eq!(source.requested(), 61);
}

#[test]
fn reads_stay_within_the_batches_in_flight() {
    let (pipeline, source) = setup(1 << 30).open_with_source();
    pipeline.start_epoch(0, 0).unwrap();
    next_batch(&pipeline).unwrap();
    pipeline.close();
    assert!(source.requested() <= 4 + 4 * 4, "{} records", source.requested());
}

#[test]
fn backends_that_like_groups_get_them_but_do_not_wait_for_the_next_batch() {
    let decoder = Arc::new(FakeDecoder {
        engines: Some(engines(1_000)),
        ..FakeDecoder::new(PixelRoute::Host)
    });
    let renderer = Arc::new(BatchRenderer::new(1_000, Duration::ZERO));
    let mut setup = setup(1 << 30).renderer(Arc::clone(&renderer) as _);
    setup.decoders = vec![Arc::clone(&decoder) as _];
    setup.epoch(0);
    assert!(decoder.largest.load(Ordering::Relaxed) >= 4 * 3);
    assert_eq!(renderer.largest(), 4 * 3);
}

#[test]
fn counters_speak_of_every_stage() {
    let pipeline = Setup::new(61).workers(2).renderer(Arc::new(FakeRenderer)).open();
    pipeline.start_epoch(0, 0).unwrap();
    drain(&pipeline);
    let stats = pipeline.stats();
    assert_eq!((stats.read.count, stats.plan.count), (61, 61));
    let images = [stats.probe.count, stats.decode.count, stats.render.count, stats.passes];
    assert_eq!(images, [61 * 3; 4]);
    assert_eq!(stats.render.bytes, 61 * (192 + 192 + 64));
    assert_eq!(stats.probe.bytes, stats.decode.bytes);
}

/// Fails when it is asked for a whole slab for the second time, and from the eighth to the
/// twelfth time.
#[derive(Default)]
struct Failing {
    pageable: Pageable,
    calls: AtomicUsize,
}

impl Allocator for Failing {
    fn allocate(&self, bytes: usize) -> Result<Block, Error> {
        if bytes as u64 == SLAB {
            let call = 1 + self.calls.fetch_add(1, Ordering::Relaxed);
            if call == 2 || (8..=12).contains(&call) {
                return Err(Error::Exhausted { bytes });
            }
        }
        self.pageable.allocate(bytes)
    }
}

#[test]
fn a_failed_allocation_is_an_error_only_for_the_batch_that_is_due() {
    let expected = setup(1 << 30).epoch(0);
    let mut setup = setup(1 << 30);
    setup.allocator = Arc::new(Failing::default());
    let pipeline = setup.open();
    pipeline.start_epoch(0, 0).unwrap();
    let (mut got, mut errors) = (Vec::new(), 0);
    loop {
        match pipeline.next(Duration::from_millis(50)) {
            Ok(Next::Batch(batch)) => got.push(Delivered::from(&*batch)),
            Ok(Next::Pending) => {}
            Ok(Next::End) => break,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Memory);
                errors += 1;
            }
        }
    }
    assert_eq!(got, expected, "no batch is lost");
    assert!((1..=5).contains(&errors), "{errors} errors");
}

#[test]
fn reads_leave_room_for_pixels() {
    let decoder = Arc::new(FakeDecoder {
        engines: Some(engines(2)),
        footprint: FOOTPRINT,
        ..FakeDecoder::new(PixelRoute::Host)
    });
    let mut setup = setup(4 * SLAB + 8 * FOOTPRINT);
    setup.decoders = vec![Arc::clone(&decoder) as _];
    setup.epoch(0);
    assert_eq!(decoder.largest.load(Ordering::Relaxed), 2);
}
