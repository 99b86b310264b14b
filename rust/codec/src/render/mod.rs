//! Runs an [`ImagePlan`] on one image: decoded rows in, the slot's elements out.
//!
//! Invariants: a one-pass plan on an untransposed JPEG holds no whole decoded image, only a band of
//! rows and the ring of resampled rows (`RenderReport::intermediate_bytes` is 0); the passes that
//! run are counted where they run; the result depends on nothing but bytes, plan and limits.

mod check;
mod fast;
mod gather;
mod host;
mod mixture;
mod pass;
mod planar;
mod scratch;

pub(crate) use scratch::with_scratch;

use crate::jpeg::{self, Asked};
use crate::pixel::color::{self, Program, Reduced};
use crate::pixel::luma;
use crate::whole;
use crate::{Error, Level};
use fast::Fraction;
use forebay_core::ports::{HostPixels, RenderReport, Stop};
use forebay_core::{Channels, Format, ImageMeta, ImagePlan, Limits, Pass, Reduce, Size};
use gather::GatherRows;
use host::Host;
use pass::{PassBuffers, Rows};
use planar::PlanarRows;
use scratch::Scratch;

/// What the pixels are made from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Input<'a> {
    Encoded(&'a [u8]),
    Host(&'a HostPixels),
    /// The whole image, rows of interleaved RGB.
    Interleaved(&'a [u8]),
    /// The whole image, a plane per channel.
    Planar(&'a [u8]),
}

/// One image's work, but for the memory that it uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work<'a> {
    pub(crate) input: Input<'a>,
    pub(crate) meta: &'a ImageMeta,
    pub(crate) plan: &'a ImagePlan,
    pub(crate) limits: &'a Limits,
    pub(crate) level: Level,
    pub(crate) stop: &'a Stop,
    /// Of a JPEG whose last row the plan reads: go on to its end, for the damage there.
    pub(crate) to_end: bool,
    /// JPEGs may be decoded at a fraction of their size.
    pub(crate) fast: bool,
}

impl Work<'_> {
    /// Writes the slot.
    pub(crate) fn run(
        &self,
        scratch: &mut Scratch,
        slot: &mut [u8],
    ) -> Result<RenderReport, Error> {
        check::plan(self.plan, self.meta, slot.len())?;
        let is_jpeg = matches!(self.input, Input::Encoded(_)) && self.meta.format == Format::Jpeg;
        let fraction = (self.fast && is_jpeg).then(|| Fraction::of(self.plan, self.meta.size));
        let fraction = fraction.flatten();
        let by = fraction.as_ref().map_or(1, |fraction| fraction.by);
        let plan = fraction.as_ref().map_or(self.plan, |fraction| &fraction.plan);
        let work = Work { plan, ..*self };
        let outcome = match work.attempt(scratch, slot, by, false) {
            Err(Error::Irregular { damaged }) => {
                work.attempt(scratch, slot, by, true).map(|report| RenderReport {
                    warnings: report.warnings.max(u32::from(damaged)),
                    ..report
                })
            }
            outcome => outcome,
        };
        scratch.trim();
        outcome
    }

    /// Decodes a JPEG at `1 / by` of its size, which its plan is for.
    fn attempt(
        &self,
        scratch: &mut Scratch,
        slot: &mut [u8],
        by: u32,
        careful: bool,
    ) -> Result<RenderReport, Error> {
        let mut report = RenderReport::default();
        if self.plan.write.channels.count() == 1 {
            self.run_channels::<1>(scratch, slot, by, careful, &mut report)?;
        } else {
            self.run_channels::<3>(scratch, slot, by, careful, &mut report)?;
        }
        Ok(report)
    }

    fn run_channels<const C: usize>(
        &self,
        scratch: &mut Scratch,
        slot: &mut [u8],
        by: u32,
        careful: bool,
        report: &mut RenderReport,
    ) -> Result<(), Error> {
        let plan = self.plan;
        let whole: Host<'_>;
        match self.input {
            Input::Encoded(bytes) if self.meta.format == Format::Jpeg => {
                let region = plan.region;
                let Scratch { decoder, passes, writers } = scratch;
                let (jpeg, band) = decoder.jpeg()?;
                let asked = Asked { size: self.meta.size, by, region, careful };
                let rows = jpeg.rows(bytes, asked, self.stop, band)?;
                let mut rows = JpegRows::<C> {
                    rows,
                    width: region.width as usize,
                    channels: plan.write.channels,
                    level: self.level,
                };
                if !plan.transpose {
                    self.passes::<C>(&mut rows, region.size(), passes, writers, slot, report)?;
                    report.warnings = self.warnings(&mut rows.rows)?;
                    return Ok(());
                }
                whole = Host::collect::<C>(&mut rows, region.size())?;
                report.warnings = self.warnings(&mut rows.rows)?;
            }
            Input::Encoded(bytes) => {
                let channels = match plan.write.channels {
                    Channels::Rgb | Channels::Gray => whole::Channels::Rgb,
                    Channels::Index => whole::Channels::First,
                };
                let (mut stored, warnings) =
                    whole::decode(bytes, self.meta, channels, self.limits, self.stop)?;
                report.warnings = warnings;
                if plan.write.channels == Channels::Gray {
                    stored = stored.gray();
                }
                whole = Host::crop::<C>(stored.pixels, self.meta.size, plan.region);
            }
            Input::Host(pixels) => whole = Host::borrow::<C>(pixels, plan.region)?,
            Input::Interleaved(pixels) => {
                whole = Host::view::<C>(pixels, self.meta.size, plan.region)?;
            }
            Input::Planar(pixels) => {
                let region = plan.region;
                let mut rows = PlanarRows::<C>::new(pixels, self.meta.size, region)?;
                let Scratch { passes, writers, .. } = scratch;
                if !plan.transpose {
                    return self.passes::<C>(
                        &mut rows,
                        region.size(),
                        passes,
                        writers,
                        slot,
                        report,
                    );
                }
                whole = Host::collect::<C>(&mut rows, region.size())?;
            }
        }
        report.intermediate_bytes += whole.owned_bytes();
        let mut host = if plan.transpose {
            let transposed = whole.transposed::<C>()?;
            report.intermediate_bytes += transposed.owned_bytes();
            transposed
        } else {
            whole
        };
        let size = host.size();
        let Scratch { passes, writers, .. } = scratch;
        self.passes::<C>(&mut host, size, passes, writers, slot, report)
    }

    /// Damage that libjpeg worked around.
    fn warnings(&self, rows: &mut jpeg::Rows<'_>) -> Result<u32, Error> {
        if self.to_end {
            rows.finish()?;
        }
        Ok(rows.warnings())
    }

    fn passes<const C: usize>(
        &self,
        rows: &mut dyn Rows,
        size: Size,
        buffers: &mut PassBuffers,
        writers: &mut scratch::Writers,
        slot: &mut [u8],
        report: &mut RenderReport,
    ) -> Result<(), Error> {
        let (last, before) = self.plan.passes.split_last().expect("plans were checked");
        // Fresh pages for every image took a sixth of the time of a recipe with two passes.
        let spare = std::mem::take(&mut buffers.spare);
        let mut memory = Memory { buffers, spare, report };
        let Made { host, size: input, reduced } =
            self.chain::<C>(rows, None, size, before, &mut memory)?;
        let mut host = self.entered::<C>(last, host, &mut memory)?;
        let program = Program::new(&last.color, &reduced);
        let (output, level) = (last.size(), self.level);
        let writer = writers.get(&self.plan.write)?;
        let from = host.as_mut();
        self.pass::<C>(rows, from, input, last, &program, memory.buffers, &mut |y, row| {
            writer.row(level, y, output, row, slot);
        })?;
        for erase in &self.plan.erase {
            writer.erase(erase, output, slot);
        }
        memory.report.passes += 1;
        memory.spare.extend(host.and_then(Host::into_pixels));
        memory.buffers.spare = memory.spare;
        Ok(())
    }
}

/// What passes use and count.
struct Memory<'a> {
    buffers: &'a mut PassBuffers,
    spare: Vec<Vec<u8>>,
    report: &'a mut RenderReport,
}

impl Memory<'_> {
    /// Room for an image.
    fn take(&mut self, bytes: usize) -> Result<Vec<u8>, Error> {
        self.report.intermediate_bytes += bytes as u64;
        let pixels = self.spare.pop().unwrap_or_default();
        if pixels.len() < bytes { Error::filled(0, bytes, "a pass") } else { Ok(pixels) }
    }
}

/// What some passes left; no image if there were none, and they began with rows.
struct Made<'a> {
    host: Option<Host<'a>>,
    size: Size,
    reduced: Reduced,
}

impl Work<'_> {
    /// Runs passes of which each leaves an image; the first one reads `from`, or `rows` if there is
    /// none, of `size`.
    fn chain<'a, const C: usize>(
        &self,
        rows: &mut dyn Rows,
        from: Option<Host<'a>>,
        size: Size,
        passes: &[Pass],
        memory: &mut Memory<'_>,
    ) -> Result<Made<'a>, Error> {
        let mut made = Made { host: from, size, reduced: Reduced::default() };
        for pass in passes {
            let mut host = self.entered::<C>(pass, made.host, memory)?;
            let output = pass.size();
            let line = output.width as usize * C;
            let bytes = line * output.height as usize;
            let mut pixels = memory.take(bytes)?;
            let program = Program::new(&pass.color, &made.reduced);
            let (from, buffers) = (host.as_mut(), &mut *memory.buffers);
            self.pass::<C>(rows, from, made.size, pass, &program, buffers, &mut |y, row| {
                pixels[y * line..(y + 1) * line].copy_from_slice(row);
            })?;
            memory.report.passes += 1;
            match pass.reduce {
                Some(Reduce::GrayMean) => {
                    let sum = color::gray_sum::<C>(self.level, &pixels[..bytes]);
                    made.reduced.gray_mean = mean(sum, output.pixels());
                }
                Some(Reduce::Histogram) => made.reduced.count::<C>(&pixels[..bytes]),
                None => {}
            }
            memory.spare.extend(host.and_then(Host::into_pixels));
            made.host = Some(Host::whole::<C>(pixels, output));
            made.size = output;
        }
        Ok(made)
    }

    /// A pass's input, once what is mixed of it is mixed.
    fn entered<'a, const C: usize>(
        &self,
        pass: &Pass,
        host: Option<Host<'a>>,
        memory: &mut Memory<'_>,
    ) -> Result<Option<Host<'a>>, Error> {
        let (Some(mixture), Some(base)) = (&pass.mixture, &host) else { return Ok(host) };
        let size = base.size();
        let bytes = size.width as usize * size.height as usize * C;
        let mut layers = Vec::with_capacity(mixture.layers.len());
        for layer in &mixture.layers {
            let from = Some(base.again());
            let made = self.chain::<C>(&mut base.again(), from, size, &layer.passes, memory)?;
            layers.extend(made.host.map(|host| (layer.weight, host)));
        }
        let mut pixels = memory.take(bytes)?;
        let all: Vec<_> =
            layers.iter().map(|(weight, host)| (*weight, host.pixels::<C>())).collect();
        let base = (mixture.weight, base.pixels::<C>());
        mixture::add_up(base, &all, &mut pixels[..bytes]);
        memory.spare.extend(layers.into_iter().filter_map(|(_, host)| host.into_pixels()));
        memory.spare.extend(host.and_then(Host::into_pixels));
        Ok(Some(Host::whole::<C>(pixels, size)))
    }

    /// Runs one pass on the result of the one before, or on the first one's rows.
    #[allow(clippy::too_many_arguments, reason = "what a pass reads, what it does, where to")]
    fn pass<const C: usize>(
        &self,
        rows: &mut dyn Rows,
        previous: Option<&mut Host<'_>>,
        input: Size,
        pass: &Pass,
        program: &Program,
        buffers: &mut PassBuffers,
        sink: pass::Sink<'_>,
    ) -> Result<(), Error> {
        match (pass.gather, previous) {
            (Some(gather), Some(host)) => {
                let mut rows = GatherRows::<C>::new(self.level, gather, host, &pass.x);
                buffers.run::<C>(self, &mut rows, gather.size(input), pass, program, sink)
            }
            (_, Some(host)) => buffers.run::<C>(self, host, input, pass, program, sink),
            (_, None) => buffers.run::<C>(self, rows, input, pass, program, sink),
        }
    }
}

/// The mean as float32, from exact sums.
#[allow(clippy::cast_precision_loss, reason = "torch's mean is a float32 too")]
fn mean(sum: u64, count: u64) -> f32 {
    sum as f32 / count as f32
}

/// Rows of a JPEG region with as many channels as the slot has.
struct JpegRows<'a, const C: usize> {
    rows: jpeg::Rows<'a>,
    width: usize,
    channels: Channels,
    level: Level,
}

impl<const C: usize> Rows for JpegRows<'_, C> {
    fn next_row(&mut self) -> Result<&[u8], Error> {
        let row = self.rows.next_row()?;
        match self.channels {
            Channels::Rgb => {}
            Channels::Gray => luma::shrink(self.level, row, self.width),
            Channels::Index => (0..self.width).for_each(|column| row[column] = row[3 * column]),
        }
        Ok(row)
    }
}
