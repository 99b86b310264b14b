//! Several decoders at once, and fields that lie on a device.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Setup, next_batch};
use forebay_engine::OnError;
use forebay_engine::testing::{Bad, FakeDecoder, Pace, PixelRoute};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn decoder(lanes: Option<usize>, pace: Pace) -> Arc<FakeDecoder> {
    Arc::new(FakeDecoder { lanes, pace, ..FakeDecoder::new(PixelRoute::Host) })
}

#[test]
fn images_go_where_they_are_done_first_and_change_nothing_there() {
    let pace = Pace::Uneven(Duration::from_micros(300));
    let (threads, engine) = (decoder(None, pace), decoder(Some(1), pace));
    let mut setup = Setup::new(200).workers(3);
    setup.decoders = vec![Arc::clone(&threads) as _, Arc::clone(&engine) as _];
    let delivered = setup.epoch(0);
    assert_eq!(delivered, Setup::new(200).epoch(0), "ORD-1");
    let [by_threads, by_engine] =
        [&threads, &engine].map(|decoder| decoder.decoded.load(Ordering::Relaxed));
    assert_eq!(by_threads + by_engine, 3 * 200);
    // Three threads do three times what one lane does; queues are in whole images.
    assert!(by_engine > 3 * 20 && by_threads > by_engine, "{by_threads} and {by_engine}");
    assert_eq!(engine.submits[1].load(Ordering::Relaxed), 1, "one lane takes one submit at once");
}

#[test]
fn decoders_share_the_work_again_after_an_epoch_was_broken_off() {
    let (one, other) = (decoder(Some(1), Pace::Fast), decoder(Some(1), Pace::Fast));
    let mut setup = Setup::new(400).workers(2);
    setup.decoders = vec![Arc::clone(&one) as _, Arc::clone(&other) as _];
    let pipeline = setup.open();
    for epoch in 0..40 {
        pipeline.start_epoch(epoch, 0).unwrap();
        next_batch(&pipeline).unwrap();
    }
    let before = [&one, &other].map(|decoder| decoder.decoded.load(Ordering::Relaxed));
    pipeline.start_epoch(40, 0).unwrap();
    while next_batch(&pipeline).is_some() {}
    let after = [&one, &other].map(|decoder| decoder.decoded.load(Ordering::Relaxed));
    assert!(before.iter().zip(after).all(|(before, after)| after > before + 100), "{after:?}");
}

#[test]
fn fields_on_a_device_hold_what_those_in_host_memory_do() {
    let bad = [(3, Bad::Header), (11, Bad::Render), (20, Bad::Read)];
    let run = |setup: Setup| setup.workers(2).on_error(OnError::Skip).bad(bad).epoch(0);
    let (host, device) = (run(Setup::new(30)), run(Setup::new(30).on_device()));
    assert_eq!(device, host);
    assert_eq!(host.iter().flat_map(|batch| &batch.failures).count(), 3, "all were skipped");
}
