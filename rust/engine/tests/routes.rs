//! Several decoders at once, and fields that lie on a device.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{STUCK, Setup, engines, next_batch};
use forebay_core::ports::{Cost, Engines};
use forebay_engine::testing::{Bad, Delivery, FakeDecoder, Gate, Pace, PixelRoute};
use forebay_engine::{Next, OnError, Shares};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const PACE: Pace = Pace::Uneven(Duration::from_micros(300));

fn decoder(engines: Option<Engines>) -> FakeDecoder {
    FakeDecoder { engines, pace: PACE, ..FakeDecoder::new(PixelRoute::Host) }
}

/// Batches of four records of three images, and a decoder of either class.
fn both(len: u64, engine: FakeDecoder) -> (Setup, [Arc<FakeDecoder>; 2]) {
    let decoders = [Arc::new(decoder(None)), Arc::new(engine)];
    let mut setup = Setup::new(len).workers(3);
    setup.decoders = decoders.iter().map(|decoder| Arc::clone(decoder) as _).collect();
    (setup, decoders)
}

/// The second decoder's part.
fn to_engines(part: f64) -> Shares {
    Shares { parts: [0.0, part, 0.0, 0.0] }
}

fn count(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::Relaxed)
}

#[test]
fn threads_and_engines_share_the_work_and_change_nothing() {
    let (setup, [threads, engine]) = both(200, decoder(Some(engines(2))));
    assert_eq!(setup.epoch(0), Setup::new(200).epoch(0), "ORD-1");
    assert_eq!(count(&threads.decoded) + count(&engine.decoded), 3 * 200);
    // Two threads, and one engine with a thread of its own.
    for decoder in [&threads, &engine] {
        assert!(count(&decoder.decoded) > 3 * 20, "{}", count(&decoder.decoded));
    }
    assert_eq!(count(&engine.submits[1]), 1, "one submit at once");
    assert_eq!(count(&engine.largest), 2);
}

#[test]
fn a_share_is_kept_and_says_which_images() {
    let taken = |share| {
        let (mut setup, [threads, engine]) = both(200, decoder(Some(engines(4))));
        setup.config.shares = Some(to_engines(share));
        assert_eq!(setup.epoch(0), Setup::new(200).epoch(0));
        (count(&threads.decoded), count(&engine.decoded))
    };
    assert_eq!(taken(0.0), (600, 0));
    assert_eq!(taken(1.0), (0, 600));
    let (threads, engine) = taken(0.8);
    assert!((475..=485).contains(&engine), "{engine} by engines, {threads} by threads");
    assert_eq!(taken(0.8), (threads, engine), "no speed matters");
}

#[test]
fn a_submit_holds_one_kind_also_across_batches() {
    let engine = FakeDecoder { kinds: 2, only: Some(1), ..decoder(Some(engines(16))) };
    let (mut setup, [threads, engine]) = both(400, engine);
    setup.config.shares = Some(to_engines(1.0));
    setup.epoch(0);
    assert_eq!(count(&engine.mixed), 0);
    assert!(count(&engine.largest) > 12, "{} of one batch's twelve", count(&engine.largest));
    assert!(count(&threads.decoded) > 0, "half of the images are not the engine's");
}

#[test]
fn a_costly_submit_is_full_early() {
    let engines = Engines { cost: Cost(6), ..engines(100) };
    let (mut setup, [_, engine]) = both(200, decoder(Some(engines)));
    setup.config.shares = Some(to_engines(1.0));
    setup.epoch(0);
    assert_eq!(count(&engine.largest), 3, "two each");
}

#[test]
fn few_images_are_left_to_threads() {
    let (setup, [threads, engine]) = both(200, decoder(Some(engines(1_000))));
    setup.epoch(0);
    assert_eq!((count(&threads.decoded), count(&engine.decoded)), (600, 0));
}

/// Batches of four records of three images, a decoder on threads, one whose engines keep a thread
/// busy, and one whose engines let it sleep.
fn three(len: u64, workers: usize) -> (Setup, [Arc<FakeDecoder>; 3]) {
    let asleep = Engines { busy: false, ..engines(4) };
    let decoders = [decoder(None), decoder(Some(engines(4))), decoder(Some(asleep))].map(Arc::new);
    let mut setup = Setup::new(len).workers(workers);
    setup.decoders = decoders.iter().map(|decoder| Arc::clone(decoder) as _).collect();
    (setup, decoders)
}

#[test]
fn engines_of_both_kinds_and_threads_end_every_epoch() {
    for workers in [0, 1, 2, 5] {
        for parts in [None, Some([0.0, 1.0]), Some([0.0, 0.5]), Some([0.3, 0.4])] {
            let (mut setup, decoders) = three(101, workers);
            setup.config.shares =
                parts.map(|[busy, asleep]| Shares { parts: [0.0, busy, asleep, 0.0] });
            assert_eq!(setup.epoch(0), Setup::new(101).epoch(0), "ORD-1");
            let all: usize = decoders.iter().map(|decoder| count(&decoder.decoded)).sum();
            assert_eq!(all, 3 * 101, "{workers} workers, {parts:?}");
            if parts == Some([0.0, 1.0]) {
                assert_eq!(count(&decoders[2].decoded), all);
            }
        }
    }
}

/// Where threads are slow, the one kind of engines has too few images, and the other would take them
/// but for the first, somebody must.
#[test]
fn a_few_costly_images_are_left_to_somebody() {
    for len in 1..4 {
        for [threads, busy] in [[1_000_000, 900], [1_000_000, 100], [10, 900]] {
            let (mut setup, _) = three(len, 3);
            let decoder = |cost, engines| FakeDecoder { cost, engines, ..decoder(None) };
            let engines = |busy, least| Engines { busy, least, cost: Cost(500), ..engines(64) };
            setup.decoders = vec![
                Arc::new(decoder(Cost(threads), None)),
                Arc::new(decoder(Cost(busy), Some(engines(true, 16)))),
                Arc::new(decoder(Cost(10), Some(engines(false, 100)))),
            ];
            assert_eq!(setup.epoch(0), Setup::new(len).epoch(0));
        }
    }
}

#[test]
fn one_worker_feeds_engines_whatever_a_batch_waited_for() {
    let bad: Vec<(u64, Bad)> = (0..60).filter(|at| at % 4 == 3).map(|at| (at, Bad::Read)).collect();
    for epoch in 0..20 {
        let run = |mut setup: Setup, shares| {
            setup.config.shares = shares;
            setup.on_error(OnError::Skip).bad(bad.clone()).epoch(epoch)
        };
        let (mut setup, _) = three(60, 1);
        setup.delivery = Delivery::Shuffled;
        let got = run(setup, Some(Shares { parts: [0.0, 1.0, 0.0, 0.0] }));
        assert_eq!(got, run(Setup::new(60), None));
    }
}

#[test]
fn engines_that_let_their_thread_sleep_come_first() {
    let (mut setup, [threads, busy, _]) = three(400, 2);
    let all = Engines { busy: false, enough: 4, least: 1, ..engines(1_000) };
    let asleep = FakeDecoder { engines: Some(all), ..FakeDecoder::new(PixelRoute::Host) };
    let asleep = Arc::new(asleep);
    setup.decoders[2] = Arc::clone(&asleep) as _;
    setup.epoch(0);
    let [threads, busy, asleep] = [threads, busy, asleep].map(|it| count(&it.decoded));
    assert!(asleep > 900, "{asleep} asleep, {busy} busy and {threads} by threads");
}

/// The one kind of engines is at its first image, and the source at a record, until most others
/// wait, of which the other kind takes some and does not end.
#[test]
fn engines_that_keep_their_thread_busy_hold_up_no_batch_that_is_due() {
    let gates = [(); 2].map(|()| Arc::new(Gate::default()));
    let behind = |gate: usize, engines| FakeDecoder {
        pace: Pace::Behind(Arc::clone(&gates[gate])),
        cost: Cost(1),
        ..decoder(Some(engines))
    };
    let one_by_one = Cost(1);
    let all_but_some = Engines { busy: false, enough: 1, cost: one_by_one, ..engines(20) };
    let busy = Arc::new(behind(1, engines(4)));
    let mut setup = Setup::new(12).workers(3).delivery(Delivery::Stuck(0, Arc::clone(&gates[0])));
    setup.decoders = vec![
        Arc::new(FakeDecoder { only: Some(2), ..decoder(None) }), // reads headers
        Arc::clone(&busy) as _,
        Arc::new(behind(0, all_but_some)),
    ];
    let pipeline = setup.open();
    pipeline.start_epoch(0, 0).unwrap();
    let begun = Instant::now();
    while count(&busy.decoded) == 0 && begun.elapsed() < STUCK {
        assert!(matches!(pipeline.next(Duration::from_millis(1)).unwrap(), Next::Pending));
    }
    assert_eq!(count(&busy.decoded), 4);
    gates[0].open();
    next_batch(&pipeline).unwrap();
    next_batch(&pipeline).unwrap();
    gates[1].open();
    next_batch(&pipeline).unwrap();
}

#[test]
fn fields_on_a_device_hold_what_those_in_host_memory_do() {
    let bad = [(3, Bad::Header), (11, Bad::Render), (20, Bad::Read)];
    let run = |setup: Setup| setup.workers(2).on_error(OnError::Skip).bad(bad).epoch(0);
    let (host, device) = (run(Setup::new(30)), run(Setup::new(30).on_device()));
    assert_eq!(device, host);
    assert_eq!(host.iter().flat_map(|batch| &batch.failures).count(), 3, "all were skipped");
}
