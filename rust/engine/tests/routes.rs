//! Several decoders at once, and fields that lie on a device.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{STUCK, Setup, engines};
use forebay_core::ports::{Cost, DecodeJob, DecodeSink, Decoder, Engines, Fault};
use forebay_core::{ImageMeta, Region};
use forebay_engine::testing::{Bad, Delivery, FakeDecoder, Pace, PixelRoute};
use forebay_engine::{OnError, Shares};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
fn a_submit_that_is_a_quarter_full_takes_none_of_a_later_batch() {
    // Of less than a quarter of one batch and all of the next, or of two batches.
    for (cost, most) in [(Cost(80), 12..=9 + 12), (Cost(100), 13..=24)] {
        let engines = Engines { busy: false, enough: 12, cost, ..engines(100) };
        let (mut setup, [_, engine]) = both(400, decoder(Some(engines)));
        setup.config.shares = Some(to_engines(1.0));
        setup.epoch(0);
        let largest = count(&engine.largest);
        assert!(most.contains(&largest), "{largest} images of two each, {cost:?}");
    }
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
fn engines_that_keep_their_thread_busy_get_what_others_cannot_decode() {
    for only in [None, Some(1)] {
        let (mut setup, [_, busy, _]) = three(400, 2);
        let all = Engines { busy: false, enough: 4, least: 1, ..engines(1_000) };
        let asleep = FakeDecoder { engines: Some(all), only, ..FakeDecoder::new(PixelRoute::Host) };
        let asleep = Arc::new(asleep);
        setup.decoders[2] = Arc::clone(&asleep) as _;
        assert_eq!(setup.epoch(0), Setup::new(400).epoch(0), "ORD-1");
        let (busy, asleep) = (count(&busy.decoded), count(&asleep.decoded));
        assert!(asleep > 500, "{asleep} asleep of 1200, {busy} busy");
        assert_eq!(busy > 0, only.is_some(), "{asleep} asleep, {busy} busy");
    }
}

/// Has engines that decode nothing before they are warm.
struct Cold {
    decoder: FakeDecoder,
    missed: AtomicBool,
    warm: AtomicBool,
}

impl Decoder for Cold {
    fn name(&self) -> &'static str {
        "cold"
    }

    fn probe(&self, bytes: &[u8]) -> Result<ImageMeta, Fault> {
        self.decoder.probe(bytes)
    }

    fn cost(&self, meta: &ImageMeta, region: Region) -> Option<Cost> {
        let is_warm = self.warm.load(Ordering::Relaxed);
        self.missed.fetch_or(!is_warm, Ordering::Relaxed);
        self.decoder.cost(meta, region).filter(|_| is_warm)
    }

    fn wants_warm_up(&self) -> bool {
        self.missed.load(Ordering::Relaxed) && !self.warm.load(Ordering::Relaxed)
    }

    fn warm_up(&self) {
        self.warm.store(true, Ordering::Relaxed);
    }

    fn engines(&self) -> Option<Engines> {
        self.decoder.engines()
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        self.decoder.submit(jobs, sink);
    }
}

#[test]
fn engines_are_warmed_up_for_the_first_image_that_needs_them() {
    for workers in [0, 3] {
        for others in [None, Some(Engines { busy: false, least: 1, ..engines(4) })] {
            let cold = Arc::new(Cold {
                decoder: FakeDecoder { only: Some(1), ..decoder(Some(engines(4))) },
                missed: AtomicBool::new(false),
                warm: AtomicBool::new(false),
            });
            let epoch = || {
                let mut setup = Setup::new(200).workers(workers);
                setup.decoders = vec![
                    Arc::new(decoder(None)),
                    Arc::new(decoder(others)),
                    Arc::clone(&cold) as Arc<dyn Decoder>,
                ];
                setup.epoch(0)
            };
            let (is_needed, begun) = (others.is_none(), Instant::now());
            assert_eq!(epoch(), Setup::new(200).epoch(0), "ORD-1");
            // The thread that warms up may end when all images are decoded.
            while is_needed && count(&cold.decoder.decoded) == 0 && begun.elapsed() < STUCK {
                epoch();
            }
            assert_eq!(cold.warm.load(Ordering::Relaxed), is_needed);
            assert_eq!(count(&cold.decoder.decoded) > 0, is_needed, "{workers} workers");
        }
    }
}

#[test]
fn fields_on_a_device_hold_what_those_in_host_memory_do() {
    let bad = [(3, Bad::Header), (11, Bad::Render), (20, Bad::Read)];
    let run = |setup: Setup| setup.workers(2).on_error(OnError::Skip).bad(bad).epoch(0);
    let (host, device) = (run(Setup::new(30)), run(Setup::new(30).on_device()));
    assert_eq!(device, host);
    assert_eq!(host.iter().flat_map(|batch| &batch.failures).count(), 3, "all were skipped");
}
