//! LIF-1: starting, stopping and waiting.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{STUCK, Setup, drain, next_batch};
use forebay_core::ports::{Cost, DecodeJob, DecodeSink, Decoder, Engines, Fault};
use forebay_core::rng::EpochKey;
use forebay_core::{ErrorKind, ImageMeta, Region};
use forebay_engine::testing::{BatchRenderer, Delivery, FakeDecoder, Gate, Pace, PixelRoute};
use forebay_engine::{FeedConfig, Next, Pipeline, left_behind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Slow backends of every kind, so that a pipeline always has work in hand.
fn busy() -> Setup {
    Setup::new(200)
        .workers(3)
        .delivery(Delivery::Shuffled)
        .decoder(FakeDecoder {
            pace: Pace::Uneven(Duration::from_micros(500)),
            ..FakeDecoder::new(PixelRoute::Host)
        })
        .renderer(Arc::new(BatchRenderer::new(6, Duration::from_micros(300))))
}

#[test]
fn dropping_at_any_point_joins() {
    let mut draws = EpochKey::new(11, 0).draws(0, 0, 0);
    for _ in 0..60 {
        let pipeline = busy().open();
        pipeline.start_epoch(0, 0).unwrap();
        let wait = Duration::from_micros(draws.below(3_000));
        for _ in 0..draws.below(6) {
            pipeline.next(wait).unwrap();
        }
        std::thread::sleep(Duration::from_micros(draws.below(1_500)));
        pipeline.close();
        assert_eq!(pipeline.stats().threads_left, 0);
        assert_eq!(pipeline.stats().held_bytes, 0, "nothing is held");
    }
}

#[test]
fn a_new_epoch_takes_over_while_the_old_one_runs() {
    let expected = busy().workers(0).epoch(1);
    let pipeline = busy().open();
    for begun in 0..4 {
        pipeline.start_epoch(0, 0).unwrap();
        for _ in 0..begun {
            next_batch(&pipeline).unwrap();
        }
    }
    pipeline.start_epoch(1, 0).unwrap();
    assert_eq!(drain(&pipeline), expected, "a stopped job is not a bad sample");
    assert_eq!(pipeline.stats().bad_samples, 0);
    assert_eq!(pipeline.stats().held_bytes, 0, "MEM-1");
}

#[test]
fn a_ready_batch_wakes_the_waiter_at_once() {
    let pipeline = busy().open();
    pipeline.start_epoch(0, 0).unwrap();
    let started = Instant::now();
    for _ in 0..50 {
        assert!(matches!(pipeline.next(10 * STUCK).unwrap(), Next::Batch(_)));
    }
    assert!(matches!(pipeline.next(10 * STUCK).unwrap(), Next::End));
    assert!(started.elapsed() < STUCK);
}

#[test]
fn a_push_and_a_close_wake_the_waiter() {
    let feed = FeedConfig::Pushed { seed: 0, shard: 0, shards: 1 };
    for workers in [0, 2] {
        let pipeline: Pipeline = Setup::new(9).workers(workers).feed(feed).open();
        pipeline.start_epoch(0, 0).unwrap();
        assert!(matches!(pipeline.next(Duration::from_millis(1)).unwrap(), Next::Pending));
        let started = Instant::now();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| pipeline.next(10 * STUCK));
            std::thread::sleep(Duration::from_millis(20));
            pipeline.push_batch(&[1, 2]).unwrap();
            assert!(matches!(waiter.join().unwrap().unwrap(), Next::Batch(_)));
            let waiter = scope.spawn(|| pipeline.next(10 * STUCK));
            std::thread::sleep(Duration::from_millis(20));
            pipeline.close();
            assert_eq!(waiter.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
        });
        assert!(started.elapsed() < STUCK);
    }
}

#[test]
fn a_thread_stuck_in_a_read_is_left_behind_and_counted() {
    let gate = Arc::new(Gate::default());
    close_during_a_read(&gate);
    gate.open();
}

fn close_during_a_read(gate: &Arc<Gate>) {
    let stuck = Delivery::Stuck(0, Arc::clone(gate));
    let mut setup = Setup::new(8).workers(2).delivery(stuck);
    setup.config.feed = FeedConfig::Pushed { seed: 0, shard: 0, shards: 1 };
    let pipeline = setup.open();
    pipeline.start_epoch(0, 0).unwrap();
    pipeline.push_batch(&[1]).unwrap();
    pipeline.push_batch(&[0]).unwrap();
    next_batch(&pipeline).unwrap();
    assert!(matches!(pipeline.next(Duration::from_millis(20)).unwrap(), Next::Pending));
    let started = Instant::now();
    pipeline.close();
    assert!(started.elapsed() < Duration::from_secs(20), "about a second, on an idle machine");
    assert_eq!(pipeline.stats().threads_left, 1);
}

/// Its engines, which it wants to be started, start once the gate is open.
#[derive(Debug)]
struct Starting(FakeDecoder, Arc<Gate>);

impl Decoder for Starting {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn probe(&self, bytes: &[u8]) -> Result<ImageMeta, Fault> {
        self.0.probe(bytes)
    }

    fn cost(&self, meta: &ImageMeta, region: Region) -> Option<Cost> {
        self.0.cost(meta, region)
    }

    fn wants_warm_up(&self) -> bool {
        !self.1.is_open()
    }

    fn warm_up(&self) {
        self.1.pass();
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        self.0.submit(jobs, sink);
    }
}

/// Its engines take until the gate opens to be given back.
#[derive(Debug)]
struct Ending(FakeDecoder, Arc<Gate>);

impl Decoder for Ending {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn probe(&self, bytes: &[u8]) -> Result<ImageMeta, Fault> {
        self.0.probe(bytes)
    }

    fn cost(&self, meta: &ImageMeta, region: Region) -> Option<Cost> {
        self.0.cost(meta, region)
    }

    fn engines(&self) -> Option<Engines> {
        self.0.engines
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        self.0.submit(jobs, sink);
    }

    fn retire(&self) {
        self.1.pass();
    }
}

#[test]
fn what_gives_engines_back_is_left_behind_and_can_be_waited_for() {
    let _alone = left_behind_alone();
    let gate = Arc::new(Gate::default());
    let mut setup = Setup::new(8).workers(3);
    let engines = Some(common::engines(4));
    let decoder = FakeDecoder { engines, ..FakeDecoder::new(PixelRoute::Host) };
    setup.decoders = vec![
        Arc::new(FakeDecoder::new(PixelRoute::Host)),
        Arc::new(Ending(decoder, Arc::clone(&gate))),
    ];
    let pipeline = setup.open();
    pipeline.start_epoch(0, 0).unwrap();
    next_batch(&pipeline).unwrap();
    pipeline.close();
    assert_eq!(pipeline.stats().threads_left, 1);
    assert!(left_behind(Duration::from_millis(20)) >= 1);
    gate.open();
    assert_eq!(left_behind(10 * STUCK), 0);
}

/// Tests that count what is left behind, one at a time: it is the process's.
fn left_behind_alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn what_starts_engines_is_left_behind_and_can_be_waited_for() {
    let _alone = left_behind_alone();
    let gate = Arc::new(Gate::default());
    let mut setup = Setup::new(8).workers(2);
    let decoder = Starting(FakeDecoder::new(PixelRoute::Host), Arc::clone(&gate));
    setup.decoders = vec![Arc::new(decoder)];
    let pipeline = setup.open();
    pipeline.start_epoch(0, 0).unwrap();
    next_batch(&pipeline).unwrap();
    pipeline.close();
    assert_eq!(pipeline.stats().threads_left, 1);
    assert!(left_behind(Duration::from_millis(20)) >= 1);
    gate.open();
    let read = Arc::new(Gate::default());
    close_during_a_read(&read);
    assert_eq!(left_behind(10 * STUCK), 0, "nobody waits for a read");
    read.open();
}

#[test]
fn without_workers_a_call_does_one_piece_of_work_at_least() {
    let pipeline = Setup::new(8).open();
    assert_eq!(pipeline.next(Duration::ZERO).unwrap_err().to_string(), "no epoch was started");
    pipeline.start_epoch(0, 0).unwrap();
    let calls =
        (0..1_000).take_while(|_| !matches!(pipeline.next(Duration::ZERO).unwrap(), Next::End));
    assert!((8..999).contains(&calls.count()));
}
