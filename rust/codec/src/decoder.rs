//! The CPU as a decoder for somebody else's renderer.

use crate::CpuBackend;
use crate::render::{Input, Work, with_scratch};
use crate::{Error, Level};
use forebay_core::ports::{
    Cost, DecodeJob, DecodeSink, Decoded, Decoder, Fault, HostCoefficients, HostMemory, HostPixels,
    Pixels, Stage,
};
use forebay_core::{
    Axis, Channels, DType, ImageMeta, ImagePlan, Layout, Pass, Region, Sampling, Taps, Write,
};
use std::sync::Arc;

/// Decodes the planned region, and nothing else, into memory that its renderer lends.
///
/// Bits and verdicts are those of [`CpuBackend`], which it asks for everything but the pixels.
#[derive(Clone)]
pub struct PixelDecoder {
    backend: Arc<CpuBackend>,
    memory: Arc<dyn HostMemory>,
    coefficients: bool,
}

impl PixelDecoder {
    /// Decodes as `backend` does, into `memory`.
    pub fn new(backend: Arc<CpuBackend>, memory: Arc<dyn HostMemory>) -> Self {
        Self { backend, memory, coefficients: false }
    }

    /// Leaves all but the Huffman codes of JPEGs that engines would take, too, to the renderer: a
    /// third of the time.
    #[must_use]
    pub fn leaving_coefficients(self) -> Self {
        Self { coefficients: true, ..self }
    }

    fn decode(&self, job: &DecodeJob) -> Result<Pixels, Fault> {
        let kind = job.meta.baseline.filter(|_| self.coefficients && job.channels == Channels::Rgb);
        let fault = |error: Error| Fault::new(Stage::Decode, error);
        if let Some(kind) = kind {
            match self.coefficients(job, kind) {
                Ok(coefficients) => return Ok(Pixels::Coefficients(coefficients)),
                Err(error @ (Error::Stopped | Error::Memory { .. })) => return Err(fault(error)),
                // libjpeg's verdict counts.
                Err(_) => {}
            }
        }
        self.rows(job).map(Pixels::Host)
    }

    fn coefficients(
        &self,
        job: &DecodeJob,
        kind: [Sampling; 3],
    ) -> Result<HostCoefficients, Error> {
        let size = job.meta.size;
        with_scratch(|scratch| {
            let jpeg = scratch.decompressor()?;
            let window = jpeg.window(&job.bytes, size, job.region, &job.stop)?;
            let memory = self.memory.take(window.bytes());
            let mut memory = memory.map_err(|fault| Error::Memory { what: fault.reason })?;
            let components = Box::new(window.read(memory.bytes_mut(), kind)?);
            Ok(HostCoefficients { size, components, memory })
        })
    }

    fn rows(&self, job: &DecodeJob) -> Result<HostPixels, Fault> {
        let DecodeJob { region, channels, .. } = *job;
        let pixels = region.width as usize * region.height as usize;
        let rows = self.memory.take(pixels * channels.count());
        let mut rows = rows.map_err(|fault| Fault::new(Stage::Decode, fault.reason))?;
        let work = Work {
            input: Input::Encoded(&job.bytes),
            meta: &job.meta,
            plan: &copy(region, channels),
            limits: self.backend.limits(),
            level: Level::best(),
            stop: &job.stop,
            to_end: false,
            fast: false,
        };
        let report = with_scratch(|scratch| work.run(scratch, rows.bytes_mut()))
            .map_err(|error: Error| Fault::new(Stage::Decode, error))?;
        Ok(HostPixels { region, channels: channels.count(), rows, warnings: report.warnings })
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
        let decoded = match meta.baseline.filter(|_| self.coefficients) {
            Some(kind) => coefficient_bytes(region, kind),
            None => 3 * region.size().pixels(),
        };
        self.backend.footprint(meta, region) + decoded
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        for job in jobs {
            let pixels = self.decode(&job);
            sink.decoded(vec![Decoded { token: job.token, pixels }]);
        }
    }
}

/// Of a region's coefficients and the samples that they become; windows end at whole MCUs, of 32
/// pixels at most.
fn coefficient_bytes(region: Region, kind: [Sampling; 3]) -> u64 {
    let samples = |sampling: &Sampling| {
        let along = |pixels: u32, each: u8| u64::from((pixels + 64).div_ceil(each.into()));
        along(region.width, sampling.across) * along(region.height, sampling.down)
    };
    3 * kind.iter().map(samples).sum::<u64>()
}

/// The plan that leaves a region's pixels as they are.
pub(crate) fn copy(region: Region, channels: Channels) -> ImagePlan {
    let axis = |length: u32| Axis {
        out_len: length,
        content_start: 0,
        taps: Taps::Copy((0..length).collect()),
    };
    let pass = Pass {
        mixture: None,
        gather: None,
        x: axis(region.width),
        y: axis(region.height),
        fill: [0; 3],
        color: Vec::new(),
        reduce: None,
    };
    let write = Write {
        channels,
        dtype: DType::UInt8,
        layout: Layout::ChannelsLast,
        scale: false,
        normalize: None,
    };
    ImagePlan { region, transpose: false, passes: vec![pass], write, erase: vec![] }
}
