//! Counters: what each stage did, and what became of the samples.

use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// What one stage did, summed over its threads.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct StageStats {
    /// Samples read, headers probed, samples planned, images decoded or rendered.
    pub count: u64,
    /// Encoded bytes that came in; bytes of the slots for `render`.
    pub bytes: u64,
    /// Time from submit to completion; the jobs of one submit share it equally.
    pub seconds: f64,
}

impl StageStats {
    pub(crate) fn add(&mut self, bytes: u64, time: Duration) {
        self.count += 1;
        self.bytes += bytes;
        self.seconds += time.as_secs_f64();
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.seconds += other.seconds;
    }
}

/// The engine's counters since the pipeline was opened. Those about samples and batches speak of
/// what was handed out, so they do not depend on threads or speed.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Stats {
    /// Reading from the source.
    pub read: StageStats,
    /// Reading headers.
    pub probe: StageStats,
    /// Drawing and planning.
    pub plan: StageStats,
    /// Decoding; decoders that leave their work to the renderer take no time here.
    pub decode: StageStats,
    /// The same for each decoder, by name.
    pub decoders: BTreeMap<&'static str, StageStats>,
    /// Rendering.
    pub render: StageStats,
    /// Time for which `next` waited.
    pub wait_seconds: f64,
    /// Passes over pixels (`RenderReport`).
    pub passes: u64,
    /// Bytes written between passes.
    pub intermediate_bytes: u64,
    /// Decoder warnings.
    pub warnings: u64,
    /// Batches handed out, those that are errors included.
    pub batches: u64,
    /// Valid samples handed out.
    pub samples: u64,
    /// Samples that failed, failed replacements included.
    pub bad_samples: u64,
    /// Slots that another sample took.
    pub replaced: u64,
    /// Slots that were zeroed.
    pub skipped: u64,
    /// Good samples in batches that were errors.
    pub dropped_samples: u64,
    /// Bytes that count against the budget at present.
    pub held_bytes: u64,
    /// The most that counted at any time.
    pub peak_bytes: u64,
    /// Threads that `close` had to leave behind.
    pub threads_left: u64,
}
