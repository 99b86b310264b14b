//! Which decoder an image goes to, so that all of them have as much to do, by their speeds.
//!
//! Every decoder has a clock: what it would take for all that it was given. An image goes where the
//! clock would stand lowest. Whether the work was done meanwhile does not matter: decoders that
//! like groups begin late and then do many at once, and must not look idle before or busy after.
//! Decoders estimate what an image costs them; how long images then take says how far the
//! estimates of each decoder are off on this machine, and corrects them.

use crate::assembly::FieldInfo;
use forebay_core::ports::{Decoder, Fault, Stage};
use forebay_core::{ImageMeta, Region};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Part of the correction that one image decides.
const PACE: f64 = 0.02;
/// No estimate is off by more; what is slower was stopped or starved.
const MOST_OFF: f64 = 16.0;
/// A decoder that could not take the images of late is not given all that come now: its clock is
/// at most this far behind the others (nanoseconds; some batches of small images).
const LAG: f64 = 5e7;

/// The decoders' clocks.
#[derive(Debug)]
pub(crate) struct Routes(Mutex<Vec<Clock>>);

#[derive(Debug, Clone, Copy)]
struct Clock {
    /// Nanoseconds of work that it was given so far, by corrected estimates.
    time: f64,
    /// How many jobs the decoder works on at once.
    lanes: f64,
    /// Measured over estimated time.
    correction: f64,
}

/// Where an image went, and its estimated cost there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route {
    pub(crate) decoder: usize,
    cost: f64,
}

impl Clock {
    /// Where it would stand with an image of this cost.
    fn with(&self, cost: f64) -> f64 {
        self.time + cost * self.correction / self.lanes
    }

    fn learn(&mut self, ratio: f64) {
        let ratio = ratio.clamp(1.0 / MOST_OFF, MOST_OFF);
        self.correction += (ratio - self.correction) * PACE;
    }
}

impl Routes {
    /// `workers` threads run the decoders that have no lanes of their own.
    pub(crate) fn new(decoders: &[Arc<dyn Decoder>], workers: usize) -> Self {
        let lanes = |decoder: &Arc<dyn Decoder>| {
            u32::try_from(decoder.lanes().unwrap_or(workers).max(1)).unwrap_or(u32::MAX)
        };
        let clock = |lanes: u32| Clock { time: 0.0, lanes: lanes.into(), correction: 1.0 };
        Self(Mutex::new(decoders.iter().map(lanes).map(clock).collect()))
    }

    /// The decoder whose clock would stand lowest, the first of equals.
    pub(crate) fn choose(
        &self,
        decoders: &[Arc<dyn Decoder>],
        meta: &ImageMeta,
        region: Region,
        info: &FieldInfo,
    ) -> Result<Route, Fault> {
        let costs = decoders.iter().map(|decoder| decoder.cost(meta, region));
        let costs: Vec<Option<f64>> = costs.map(|cost| Some(cost?.0 as f64)).collect();
        let mut clocks = self.lock();
        let routes = costs.iter().enumerate().filter_map(|(decoder, cost)| {
            let route = Route { decoder, cost: (*cost)? };
            Some((clocks[decoder].with(route.cost), route))
        });
        let first = routes.min_by(|(a, _), (b, _)| a.total_cmp(b));
        let (time, route) = first.ok_or_else(|| {
            let path = &info.path;
            Fault::new(Stage::Decode, format!("{path}: no decoder for this image"))
        })?;
        clocks[route.decoder].time = time;
        for clock in clocks.iter_mut() {
            clock.time = clock.time.max(time - LAG);
        }
        Ok(route)
    }

    /// Says how long an image took.
    pub(crate) fn took(&self, route: Route, time: Duration) {
        if route.cost > 0.0 {
            self.lock()[route.decoder].learn(time.as_secs_f64() * 1e9 / route.cost);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Clock>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_corrected_by_what_images_take() {
        let mut clock = Clock { time: 450.0, lanes: 2.0, correction: 1.0 };
        assert!((clock.with(100.0) - 500.0).abs() < 1e-9);
        (0..400).for_each(|_| clock.learn(3.0));
        assert!((clock.with(100.0) - 600.0).abs() < 1.0);
        clock.learn(f64::INFINITY);
        assert!(clock.with(100.0) < 620.0, "a stopped thread does not spoil it");
    }
}
