//! The CPU as decoder and renderer in one: it decodes while it renders, band by band.

use crate::render::{Input, Work, with_scratch};
use crate::{Error, Level};
use forebay_core::ports::{
    Cost, DecodeJob, DecodeSink, Decoded, Decoder, Failed, Fault, Pixels, RenderJob, RenderReport,
    RenderSink, Rendered, Renderer, Slot, SlotMemory, Stage,
};
use forebay_core::{FieldSpec, Format, HasKind, ImageMeta, Limits, Mix, Region};
use std::sync::Arc;

/// Decodes and renders on the calling thread.
///
/// As a [`Decoder`] it hands the encoded bytes on untouched; as a [`Renderer`] it takes them, or
/// pixels that another decoder left in host memory. Any thread may call it; each keeps some
/// scratch memory of its own.
///
/// ```
/// use forebay_codec::CpuBackend;
/// use forebay_core::{Limits, ports::Decoder};
/// let backend = CpuBackend::new(Limits::default());
/// let fault = backend.probe(b"").unwrap_err();
/// assert_eq!(fault.reason, "empty file");
/// ```
#[derive(Debug)]
pub struct CpuBackend {
    limits: Limits,
    level: Level,
    fast: bool,
}

impl CpuBackend {
    /// With the fastest instructions of this CPU.
    pub fn new(limits: Limits) -> Arc<Self> {
        Self::with_level(limits, Level::best())
    }

    /// With chosen instructions.
    pub fn with_level(limits: Limits, level: Level) -> Arc<Self> {
        Arc::new(Self { limits, level, fast: false })
    }

    /// As a renderer it decodes JPEGs at a half, a quarter or an eighth of their size where a plan
    /// makes the image smaller by at least one and a half times that, in one antialiased resize; the
    /// means of pixels then stand for these. As a decoder it is like any other.
    pub fn fast(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, level: Level::best(), fast: true })
    }

    /// The limits that it was made with.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    fn render(&self, job: &mut RenderJob) -> Result<RenderReport, Error> {
        let input = match &job.pixels {
            Pixels::Encoded(bytes) => Input::Encoded(bytes),
            Pixels::Host(pixels) => Input::Host(pixels),
            Pixels::Coefficients(_) | Pixels::Device(_) => {
                return Err(Error::internal("a device's pixels on the CPU"));
            }
        };
        let slot = host(&mut *job.slot)?;
        let work = Work {
            input,
            meta: &job.meta,
            plan: &job.plan,
            limits: &self.limits,
            level: self.level,
            stop: &job.stop,
            to_end: false,
            fast: self.fast,
        };
        with_scratch(|scratch| work.run(scratch, slot))
    }
}

fn host(slot: &mut dyn Slot) -> Result<&mut [u8], Error> {
    match slot.memory() {
        SlotMemory::Host(memory) => Ok(memory),
        SlotMemory::Device { .. } => Err(Error::internal("a device slot on the CPU")),
    }
}

impl Decoder for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn probe(&self, bytes: &[u8]) -> Result<ImageMeta, Fault> {
        Ok(crate::probe(bytes, &self.limits)?)
    }

    /// Least squares over 400 ImageNet photos and 500 other files on one core of an EPYC: baseline
    /// 8.3 ns a byte (entropy decoding, down to the region's last row) and 1.6 ns a pixel of the
    /// region (inverse DCT, upsampling, colour); several scans 10.6 ns a byte and 3.4 ns a pixel,
    /// the coefficients of the whole image; PNG 2.8 ns a byte and 2.2 ns a pixel. The others' time a
    /// pixel is the middle of what noisy and smooth pictures take; with the compression WebP ranges
    /// from 14 to 27 ns, TIFF from 1 to 24.
    fn cost(&self, meta: &ImageMeta, region: Region) -> Option<Cost> {
        let bytes = meta.bytes as u64;
        let pixels = meta.size.pixels();
        let tenths = match meta.format {
            Format::Jpeg if meta.progressive => {
                106 * bytes + 18 * pixels + 16 * region.size().pixels()
            }
            Format::Jpeg => {
                let rows = u64::from(region.y) + u64::from(region.height);
                let above = bytes * rows / u64::from(meta.size.height.max(1));
                83 * above + 16 * region.size().pixels()
            }
            Format::Png => 28 * bytes + 22 * pixels,
            Format::WebP => 180 * pixels,
            Format::Tiff => 100 * pixels,
            Format::Bmp => 60 * pixels,
            Format::Gif => 50 * pixels,
            Format::Pnm => 20 * pixels,
        };
        Some(Cost(tenths / 10))
    }

    fn footprint(&self, meta: &ImageMeta, region: Region) -> u64 {
        let (pixels, region) = (meta.size.pixels(), region.size().pixels());
        match meta.format {
            // The whole image as it is stored, then the region as RGB.
            Format::Png => u64::from(meta.components) * pixels + 3 * region,
            // RGBA at the most, RGB of it, then the region.
            Format::WebP | Format::Bmp | Format::Tiff | Format::Gif => 7 * pixels + 3 * region,
            // 16 bits of three channels, then 8, then the region.
            Format::Pnm => 9 * pixels + 3 * region,
            // All coefficients, two bytes each; turned images are turned as a whole.
            Format::Jpeg => {
                let coefficients = 2 * u64::from(meta.components) * pixels;
                let turned = if meta.orientation.transpose { 6 * region } else { 0 };
                turned + if meta.progressive { coefficients } else { 0 }
            }
        }
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        for job in jobs {
            let pixels = Ok(Pixels::Encoded(job.bytes));
            sink.decoded(vec![Decoded { token: job.token, pixels }]);
        }
    }
}

impl Renderer for CpuBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn submit(&self, jobs: Vec<RenderJob>, sink: &Arc<dyn RenderSink>) {
        for mut job in jobs {
            let stage = match job.pixels {
                Pixels::Encoded(_) => Stage::Decode,
                _ => Stage::Transform,
            };
            let outcome = self.render(&mut job).map_err(|error| Fault::new(stage, error));
            sink.rendered(vec![Rendered { token: job.token, slot: job.slot, outcome }]);
        }
    }

    fn mix(
        &self,
        slots: &mut [Box<dyn Slot>],
        spec: &FieldSpec,
        mixes: &[Mix],
    ) -> Result<(), Failed> {
        let mixed = slots.iter_mut().map(|slot| host(&mut **slot)).collect::<Result<Vec<_>, _>>();
        let mixed = mixed.and_then(|mut slots| crate::mix::mix(&mut slots, spec, mixes));
        mixed.map_err(|error| Failed { kind: error.kind(), reason: error.to_string() })
    }
}
