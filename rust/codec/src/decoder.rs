//! The CPU as a decoder for somebody else's renderer.

use crate::CpuBackend;
use crate::render::{Input, Work, with_scratch};
use crate::{Error, Level};
use forebay_core::ports::{
    Cost, DecodeJob, DecodeSink, Decoded, Decoder, Fault, HostMemory, HostPixels, Pixels, Stage,
};
use forebay_core::{Axis, DType, ImageMeta, ImagePlan, Layout, Pass, Region, Taps, Write};
use std::sync::Arc;

/// Decodes the planned region, and nothing else, into memory that its renderer lends.
///
/// Bits and verdicts are those of [`CpuBackend`], which it asks for everything but the pixels.
#[derive(Clone)]
pub struct PixelDecoder {
    backend: Arc<CpuBackend>,
    memory: Arc<dyn HostMemory>,
}

impl PixelDecoder {
    /// Decodes as `backend` does, into `memory`.
    pub fn new(backend: Arc<CpuBackend>, memory: Arc<dyn HostMemory>) -> Self {
        Self { backend, memory }
    }

    fn decode(&self, job: &DecodeJob) -> Result<HostPixels, Fault> {
        let DecodeJob { region, channels, .. } = *job;
        let pixels = region.width as usize * region.height as usize;
        let mut rows = self.memory.take(pixels * channels)?;
        let work = Work {
            input: Input::Encoded(&job.bytes),
            meta: &job.meta,
            plan: &copy(region, channels),
            limits: self.backend.limits(),
            level: Level::best(),
            stop: &job.stop,
            to_end: false,
        };
        with_scratch(|scratch| work.run(scratch, rows.bytes_mut()))
            .map_err(|error: Error| Fault::new(Stage::Decode, error))?;
        Ok(HostPixels { region, channels, rows })
    }
}

impl std::fmt::Debug for PixelDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PixelDecoder").field("backend", &self.backend).finish_non_exhaustive()
    }
}

impl Decoder for PixelDecoder {
    fn name(&self) -> &'static str {
        Decoder::name(&*self.backend)
    }

    fn probe(&self, bytes: &[u8]) -> Result<ImageMeta, Fault> {
        self.backend.probe(bytes)
    }

    fn cost(&self, meta: &ImageMeta, region: Region) -> Option<Cost> {
        self.backend.cost(meta, region)
    }

    fn footprint(&self, meta: &ImageMeta, region: Region) -> u64 {
        self.backend.footprint(meta, region) + 3 * region.size().pixels()
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        for job in jobs {
            let pixels = self.decode(&job).map(Pixels::Host);
            sink.decoded(vec![Decoded { token: job.token, pixels }]);
        }
    }
}

/// The plan that leaves a region's pixels as they are.
pub(crate) fn copy(region: Region, channels: usize) -> ImagePlan {
    let axis = |length: u32| Axis {
        out_len: length,
        content_start: 0,
        taps: Taps::Copy((0..length).collect()),
    };
    let pass = Pass {
        x: axis(region.width),
        y: axis(region.height),
        fill: [0; 3],
        color: Vec::new(),
        reduce: None,
    };
    let write = Write {
        channels: u8::try_from(channels).unwrap_or(3),
        dtype: DType::UInt8,
        layout: Layout::ChannelsLast,
        scale: false,
        normalize: None,
    };
    ImagePlan { region, transpose: false, passes: vec![pass], write }
}
