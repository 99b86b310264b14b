//! ORD-1: threads, depth, backends and speed never change what is delivered.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;

use common::{Setup, engines};
use forebay_core::ports::{Decoder, Renderer};
use forebay_engine::OnError;
use forebay_engine::testing::{
    Bad, BatchRenderer, Delivery, FakeDecoder, FakeRenderer, Pace, PixelRoute,
};
use std::sync::Arc;
use std::time::Duration;

const BAD: [(u64, Bad); 5] =
    [(3, Bad::Read), (8, Bad::Header), (17, Bad::Pixels), (18, Bad::Plan), (30, Bad::Render)];

fn uneven(route: PixelRoute) -> FakeDecoder {
    FakeDecoder { pace: Pace::Uneven(Duration::from_micros(400)), ..FakeDecoder::new(route) }
}

/// One decoder for images of an even number of bytes, one that likes groups for the others.
fn split() -> Vec<Arc<dyn Decoder>> {
    let grouped = FakeDecoder {
        only: Some(1),
        engines: Some(engines(3)),
        ..FakeDecoder::new(PixelRoute::Host)
    };
    vec![Arc::new(uneven(PixelRoute::Fused)), Arc::new(grouped)]
}

#[test]
fn order_and_bytes_do_not_depend_on_workers_or_depth() {
    for policy in [OnError::Raise, OnError::Skip, OnError::Replace] {
        let expected = Setup::new(37).bad(BAD).on_error(policy).epoch(2);
        assert_eq!(expected.len(), 10);
        for workers in [1, 2, 8] {
            for depth in [1, 3] {
                let got = Setup::new(37)
                    .bad(BAD)
                    .on_error(policy)
                    .workers(workers)
                    .depth(depth)
                    .delivery(Delivery::Shuffled)
                    .decoder(uneven(PixelRoute::Host))
                    .epoch(2);
                assert_eq!(got, expected, "{policy:?}, {workers} workers, depth {depth}");
            }
        }
    }
}

#[test]
fn order_and_bytes_do_not_depend_on_backends() {
    let renderers: [fn() -> Arc<dyn Renderer>; 3] = [
        || Arc::new(FakeRenderer),
        || Arc::new(BatchRenderer::new(5, Duration::from_micros(200))),
        || Arc::new(BatchRenderer::new(1000, Duration::from_micros(200))),
    ];
    for policy in [OnError::Raise, OnError::Skip, OnError::Replace] {
        let expected = Setup::new(37).bad(BAD).on_error(policy).epoch(0);
        for renderer in renderers {
            for workers in [0, 2] {
                let setup = || {
                    Setup::new(37).bad(BAD).on_error(policy).workers(workers).renderer(renderer())
                };
                let fused = setup().decoder(FakeDecoder::new(PixelRoute::Fused));
                assert_eq!(fused.epoch(0), expected);
                let mut routed = setup().delivery(Delivery::Shuffled);
                routed.decoders = split();
                assert_eq!(routed.epoch(0), expected);
            }
        }
    }
}

#[test]
fn order_does_not_depend_on_the_budget() {
    let expected = Setup::new(37).bad(BAD).on_error(OnError::Replace).epoch(1);
    for budget in [1, 2_000, 5_000, 50_000] {
        let decoder = FakeDecoder { footprint: 700, ..FakeDecoder::new(PixelRoute::Host) };
        let got = Setup::new(37)
            .bad(BAD)
            .on_error(OnError::Replace)
            .workers(2)
            .budget(budget)
            .decoder(decoder)
            .renderer(Arc::new(BatchRenderer::new(64, Duration::ZERO)))
            .epoch(1);
        assert_eq!(got, expected, "budget {budget}");
    }
}
