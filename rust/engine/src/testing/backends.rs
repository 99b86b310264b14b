//! Decoders and renderers that do little, in every manner that real ones have.

use super::FakeMemory;
use forebay_core::ports::{
    Cost, DecodeJob, DecodeSink, Decoded, Decoder, Engines, Failed, Fault, HostPixels, Pixels,
    RenderJob, RenderReport, RenderSink, Rendered, Renderer, Slot, SlotMemory, Stage,
};
use forebay_core::{ErrorKind, FieldSpec, Format, ImageMeta, Mix, Orientation, Region, Size};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Who turns bytes into pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PixelRoute {
    /// The decoder.
    Host,
    /// The renderer: the decoder passes the bytes on.
    Fused,
}

/// How long a backend takes for a job.
#[derive(Debug, Clone, Copy)]
pub enum Pace {
    /// No time.
    Fast,
    /// A time between zero and this, different for every image.
    Uneven(Duration),
}

impl Pace {
    fn take(self, seed: usize) {
        if let Self::Uneven(most) = self {
            let eighths = u32::try_from(seed * 5 % 9).unwrap_or(0);
            std::thread::sleep(most * eighths / 8);
        }
    }
}

/// Decodes in the calling thread.
#[derive(Debug)]
pub struct FakeDecoder {
    /// Who decodes.
    pub route: PixelRoute,
    /// How long it takes.
    pub pace: Pace,
    /// Its cost for all images, unless it takes only some.
    pub cost: Cost,
    /// Its cost of 1 for images whose number of bytes leaves this remainder by two; `None` elsewhere.
    pub only: Option<usize>,
    /// It has engines of its own.
    pub engines: Option<Engines>,
    /// Images go into one submit only if their numbers of bytes leave the same remainder.
    pub kinds: usize,
    /// Submits with images of several kinds.
    pub mixed: AtomicUsize,
    /// What it holds per image.
    pub footprint: u64,
    /// The largest group that it was given.
    pub largest: AtomicUsize,
    /// Images that it decoded.
    pub decoded: AtomicUsize,
    /// Submits that it works on, and the most that it had at once.
    pub submits: [AtomicUsize; 2],
}

impl FakeDecoder {
    /// A fast decoder of everything that takes one image at a time.
    pub fn new(route: PixelRoute) -> Self {
        Self {
            route,
            pace: Pace::Fast,
            cost: Cost(2),
            only: None,
            footprint: 0,
            engines: None,
            kinds: 1,
            mixed: AtomicUsize::new(0),
            largest: AtomicUsize::new(0),
            decoded: AtomicUsize::new(0),
            submits: [AtomicUsize::new(0), AtomicUsize::new(0)],
        }
    }
}

impl Decoder for FakeDecoder {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn probe(&self, bytes: &[u8]) -> Result<ImageMeta, Fault> {
        if bytes[0] == 1 {
            return Err(Fault::new(Stage::Decode, "the fake image has no header"));
        }
        Ok(ImageMeta {
            format: Format::Png,
            size: Size { width: 64, height: 1 + u32::from(bytes[1]) },
            orientation: Orientation::default(),
            components: bytes[0],
            progressive: false,
            baseline: None,
            restarts: false,
            bytes: bytes.len(),
        })
    }

    fn cost(&self, meta: &ImageMeta, _region: Region) -> Option<Cost> {
        match self.only {
            None => Some(self.cost),
            Some(remainder) => (meta.bytes % 2 == remainder).then_some(Cost(1)),
        }
    }

    fn footprint(&self, _meta: &ImageMeta, _region: Region) -> u64 {
        self.footprint
    }

    fn engines(&self) -> Option<Engines> {
        self.engines
    }

    fn kind(&self, meta: &ImageMeta) -> u64 {
        (meta.bytes % self.kinds) as u64
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        let mixed =
            jobs.windows(2).any(|pair| self.kind(&pair[0].meta) != self.kind(&pair[1].meta));
        self.mixed.fetch_add(mixed.into(), Ordering::Relaxed);
        self.largest.fetch_max(jobs.len(), Ordering::Relaxed);
        self.decoded.fetch_add(jobs.len(), Ordering::Relaxed);
        let [now, most] = &self.submits;
        most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        for job in jobs {
            assert_ne!(job.bytes[0], 4, "the fake decoder panics");
            self.pace.take(job.bytes.len());
            let pixels = match self.route {
                PixelRoute::Fused => Ok(Pixels::Encoded(job.bytes)),
                PixelRoute::Host => decode(&job.bytes, job.region).map(Pixels::Host),
            };
            let stopped = Fault::new(Stage::Decode, "stopped");
            let pixels = if job.stop.raised() { Err(stopped) } else { pixels };
            sink.decoded(vec![Decoded { token: job.token, pixels }]);
        }
        now.fetch_sub(1, Ordering::Relaxed);
    }
}

fn decode(bytes: &[u8], region: Region) -> Result<HostPixels, Fault> {
    if bytes[0] == 2 {
        return Err(Fault::new(Stage::Decode, "the fake pixels are damaged"));
    }
    let shift = u8::try_from(region.x).unwrap_or(0);
    Ok(HostPixels {
        warnings: 0,
        region,
        channels: 3,
        rows: Box::new(bytes.iter().map(|byte| byte.wrapping_add(shift)).collect::<Vec<_>>()),
    })
}

fn render(job: RenderJob, sink: &dyn RenderSink) {
    let RenderJob { token, pixels, meta, plan, mut slot, .. } = job;
    let outcome = match pixels {
        Pixels::Host(pixels) => write(&mut *slot, &pixels, &meta),
        Pixels::Encoded(bytes) => {
            decode(&bytes, plan.region).and_then(|pixels| write(&mut *slot, &pixels, &meta))
        }
        Pixels::Coefficients(_) | Pixels::Device(_) => {
            Err(Fault::new(Stage::Transform, "there is no fake device"))
        }
    };
    sink.rendered(vec![Rendered { token, slot, outcome }]);
}

fn write(
    slot: &mut dyn Slot,
    pixels: &HostPixels,
    meta: &ImageMeta,
) -> Result<RenderReport, Fault> {
    let fails = meta.components == 3;
    let fill = |memory: &mut [u8]| {
        if fails {
            return memory.fill(0xEE);
        }
        for (byte, value) in memory.iter_mut().zip(pixels.rows.bytes().iter().cycle()) {
            *byte = *value;
        }
    };
    match slot.memory() {
        SlotMemory::Host(memory) => fill(memory),
        SlotMemory::Device { memory, offset, bytes } => {
            let memory = memory.as_any().downcast_ref::<FakeMemory>();
            memory.expect("fakes among themselves").write(offset, bytes, fill);
        }
    }
    if fails {
        return Err(Fault::new(Stage::Transform, "the fake renderer fails"));
    }
    Ok(RenderReport { passes: 1, ..RenderReport::default() })
}

/// Adds to each slot's bytes those of the one before it, whatever the mix.
fn mix(slots: &mut [Box<dyn Slot>], mixes: &[Mix]) {
    let with = |slot: &mut dyn Slot, act: &mut dyn FnMut(&mut [u8])| match slot.memory() {
        SlotMemory::Host(memory) => act(memory),
        SlotMemory::Device { memory, offset, bytes } => {
            let memory = memory.as_any().downcast_ref::<FakeMemory>();
            memory.expect("fakes among themselves").write(offset, bytes, act);
        }
    };
    for _ in mixes {
        let mut all = Vec::new();
        for slot in &mut *slots {
            with(&mut **slot, &mut |memory| all.push(memory.to_vec()));
        }
        for (number, slot) in slots.iter_mut().enumerate() {
            let other = &all[(number + all.len() - 1) % all.len()];
            with(&mut **slot, &mut |memory| {
                memory
                    .iter_mut()
                    .zip(other)
                    .for_each(|(byte, more)| *byte = byte.wrapping_add(*more));
            });
        }
    }
}

/// Renders in the calling thread.
#[derive(Debug)]
pub struct FakeRenderer;

impl Renderer for FakeRenderer {
    fn name(&self) -> &'static str {
        "fake"
    }

    fn submit(&self, jobs: Vec<RenderJob>, sink: &Arc<dyn RenderSink>) {
        for job in jobs {
            render(job, &**sink);
        }
    }

    fn mix(
        &self,
        slots: &mut [Box<dyn Slot>],
        _spec: &FieldSpec,
        mixes: &[Mix],
    ) -> Result<(), Failed> {
        mix(slots, mixes);
        Ok(())
    }
}

/// Renders some jobs, then has no memory for more, or fails.
#[derive(Debug)]
pub struct FailingRenderer {
    /// Jobs that it still renders.
    pub left: AtomicUsize,
    /// It fails for good.
    pub fails: bool,
}

impl Renderer for FailingRenderer {
    fn name(&self) -> &'static str {
        "failing"
    }

    fn submit(&self, mut jobs: Vec<RenderJob>, sink: &Arc<dyn RenderSink>) {
        let most = jobs.len();
        let left = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(most))
        });
        let refused = jobs.split_off(most.min(left.unwrap_or(0)));
        for job in jobs {
            render(job, &**sink);
        }
        let reason = || "the fake device is full".to_owned();
        if refused.is_empty() {
        } else if self.fails {
            sink.failed(ErrorKind::Device, reason());
        } else {
            sink.postponed(refused, reason());
        }
    }

    fn mix(
        &self,
        slots: &mut [Box<dyn Slot>],
        _spec: &FieldSpec,
        mixes: &[Mix],
    ) -> Result<(), Failed> {
        if self.fails {
            let reason = "the fake device cannot mix".to_owned();
            return Err(Failed { kind: ErrorKind::Device, reason });
        }
        mix(slots, mixes);
        Ok(())
    }
}

type Batch = (Vec<RenderJob>, Arc<dyn RenderSink>);

/// Renders whole batches later, from a thread of its own and last job first, as a GPU may.
#[derive(Debug)]
pub struct BatchRenderer {
    group: usize,
    largest: AtomicUsize,
    thread: Option<(Sender<Batch>, JoinHandle<()>)>,
}

impl BatchRenderer {
    /// Likes `group` jobs at once and waits for `delay` before each group.
    ///
    /// # Panics
    /// The system gives no thread.
    pub fn new(group: usize, delay: Duration) -> Self {
        let (sender, receiver): (_, Receiver<Batch>) = channel();
        let thread = std::thread::Builder::new()
            .name("fake-renderer".to_owned())
            .spawn(move || {
                for (jobs, sink) in receiver {
                    std::thread::sleep(delay);
                    for job in jobs.into_iter().rev() {
                        render(job, &*sink);
                    }
                }
            })
            .expect("the system gives a thread");
        Self { group, largest: AtomicUsize::new(0), thread: Some((sender, thread)) }
    }

    /// The largest group that it was given.
    pub fn largest(&self) -> usize {
        self.largest.load(Ordering::Relaxed)
    }
}

impl Renderer for BatchRenderer {
    fn name(&self) -> &'static str {
        "fake-batch"
    }

    fn preferred_jobs(&self) -> usize {
        self.group
    }

    fn submit(&self, jobs: Vec<RenderJob>, sink: &Arc<dyn RenderSink>) {
        self.largest.fetch_max(jobs.len(), Ordering::Relaxed);
        if let Some((sender, _)) = &self.thread {
            // Fails only if the thread has panicked, which the test will notice.
            let _ = sender.send((jobs, Arc::clone(sink)));
        }
    }

    fn mix(
        &self,
        slots: &mut [Box<dyn Slot>],
        _spec: &FieldSpec,
        mixes: &[Mix],
    ) -> Result<(), Failed> {
        mix(slots, mixes);
        Ok(())
    }
}

impl Drop for BatchRenderer {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.thread.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}
