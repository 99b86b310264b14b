//! The JPEG engines of a GPU, many images at once.
//!
//! The engines decode whole baseline images to their components, bit for bit as libjpeg's accurate
//! inverse DCT does; upsampling and colour are the renderer's. One call keeps all engines busy and
//! returns when they are nearly done; it keeps a core busy, too, and calls from a second thread gain
//! nothing. A call whose images have different subsampling takes four times as long an image, so
//! it gets images of one kind.
//!
//! nvJPEG copies files to the device one by one. A call takes 55 us an image from page-locked memory,
//! and 66 from other memory, which the driver copies first (H200, photos of 110 kB).
//!
//! nvJPEG's CUDA decoding is not used beside them: batched, it does 4,400 images/s where engines do
//! 17,800, and while it runs they do 1,200 (H200, 400 photos of 109 kB, CUDA 13.0).

use crate::Error;
use crate::driver::{Device, DeviceBuffer, Event, Stream, Wait};
use crate::nvjpeg::{self, Backend, BatchState, Handle, NvJpeg};
use crate::pack::{Component, Plane, Scan, Source};
use crate::pixels::DevicePixels;
use crate::pool::Pool;
use forebay_core::ports::{self, Cost, DecodeJob, DecodeSink, Decoded, Decoder, Fault, Pixels};
use forebay_core::{Bytes, ImageMeta, Region, Sampling, Size};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A call of 14 images takes 84 us an image, one of 56 takes 57, one of 256 takes 54 (H200).
const GROUP: usize = 64;
/// A call takes some time of its own: fewer images are left to others.
const LEAST: usize = 16;
/// A call of usual photos; larger images are to leave some for other decoders, too.
const GROUP_COST: Cost = Cost(4_000_000);
/// Planes and their rows begin at multiples of this.
const ALIGN: usize = 64;
/// Larger sides are not the engines'.
const MAX_SIDE: u32 = 16_384;
/// Smaller ones are quicker on a core.
const MIN_SIDE: u32 = 64;

/// 4:4:4 and 4:2:0: other kinds are made ready when they come.
const USUAL: [[Sampling; 3]; 2] = [[FULL; 3], [FULL, HALF, HALF]];
const FULL: Sampling = Sampling { across: 1, down: 1 };
const HALF: Sampling = Sampling { across: 2, down: 2 };

/// The engines as a decoder.
pub struct HardwareDecoder {
    nvjpeg: &'static NvJpeg,
    device: Arc<Device>,
    memory: Arc<Pool<DeviceBuffer>>,
    /// Decodes what the engines refuse, and reads headers.
    fallback: Arc<dyn Decoder>,
    /// Set when they are warm; why they are not used, if so.
    engines: OnceLock<Result<Mutex<Option<Warm>>, Error>>,
    /// There was an image for them before they were.
    missed: AtomicBool,
}

/// The engines, warm: that takes half a second.
struct Warm {
    stream: Stream,
    handle: Arc<Handle>,
    states: HashMap<[Sampling; 3], States>,
}

/// Those of one kind of images: a state that sees several takes twice as long, and a new one takes
/// an eighth of a second. They are used in turn, since one that is used again before its last call is
/// done hangs nvJPEG.
struct States([State; 2]);

struct State {
    batch: BatchState,
    /// What the call before still reads.
    last: Option<(Arc<Event>, Vec<Bytes>)>,
}

impl std::fmt::Debug for HardwareDecoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HardwareDecoder").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Warm {
    fn new(nvjpeg: &'static NvJpeg, device: &Arc<Device>) -> Result<Self, Error> {
        let handle = Handle::new(nvjpeg, device, Backend::Hardware)?;
        if handle.engines()?.is_some_and(|engines| engines.count == 0) {
            return Err(Error::Invalid { what: format!("{device} has no JPEG engines") });
        }
        let mut states = HashMap::new();
        for kind in USUAL {
            states.insert(kind, States::new(&handle)?);
        }
        Ok(Self { stream: Stream::new(device)?, handle, states })
    }
}

impl States {
    fn new(handle: &Arc<Handle>) -> Result<Self, Error> {
        let state = || -> Result<State, Error> {
            Ok(State { batch: BatchState::new(handle)?, last: None })
        };
        Ok(Self([state()?, state()?]))
    }

    /// The next one, and what it read last is done.
    fn next(&mut self) -> Result<&mut State, Error> {
        self.0.rotate_left(1);
        let state = &mut self.0[0];
        if let Some((event, _bytes)) = state.last.take() {
            event.synchronize()?;
        }
        Ok(state)
    }
}

impl Drop for Warm {
    fn drop(&mut self) {
        for state in self.states.values_mut().flat_map(|states| &mut states.0) {
            if let Some((event, _bytes)) = state.last.take() {
                // An engine that fails reads nothing any more.
                let _ = event.synchronize();
            }
        }
    }
}

impl HardwareDecoder {
    pub(crate) fn new(
        nvjpeg: &'static NvJpeg,
        device: &Arc<Device>,
        memory: &Arc<Pool<DeviceBuffer>>,
        fallback: Arc<dyn Decoder>,
    ) -> Self {
        Self {
            nvjpeg,
            device: Arc::clone(device),
            memory: Arc::clone(memory),
            fallback,
            engines: OnceLock::new(),
            missed: AtomicBool::new(false),
        }
    }

    /// Decodes images of one kind; their pixels in order.
    fn decode(&self, jobs: &[DecodeJob]) -> Result<Vec<Pixels>, Error> {
        let _current = self.device.enter()?;
        let kind = jobs.first().and_then(|job| job.meta.baseline);
        let kind = kind.ok_or_else(|| Error::Invalid { what: "no file for engines".to_owned() })?;
        let mut engines = match self.engines.get() {
            Some(Ok(engines)) => engines.lock().unwrap_or_else(PoisonError::into_inner),
            Some(Err(error)) => return Err(error.clone()),
            None => return Err(Error::Invalid { what: "the engines are not warm".to_owned() }),
        };
        let retired = || Error::Invalid { what: "the engines are given back".to_owned() };
        let Warm { stream, handle, states } = engines.as_mut().ok_or_else(retired)?;
        let mut end = 0;
        let layouts: Vec<[Slice; 3]> =
            jobs.iter().map(|job| planes(job.meta.size, kind, &mut end)).collect();
        let memory = Arc::new(self.memory.loan(end)?);
        let base = memory.pointer();
        let images: Vec<nvjpeg::Image> = layouts.iter().map(|planes| image(planes, base)).collect();
        let encoded: Vec<&[u8]> = jobs.iter().map(|job| &*job.bytes).collect();

        let states = match states.entry(kind) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(States::new(handle)?),
        };
        let state = states.next()?;
        let decoded = Arc::new(Event::new(&self.device, Wait::Block)?);
        state.batch.initialize(jobs.len())?;
        // SAFETY: `last` keeps the bytes until the event; the planes have room (`planes`), lie
        // in memory of ours alone, and are kept until the event, too.
        let result = unsafe { state.batch.decode(&encoded, &images, stream) };
        if let Err(error) = decoded.record(stream) {
            // Nobody could wait for the engines otherwise.
            let _ = stream.synchronize();
            return Err(error);
        }
        memory.use_until(&decoded);
        state.last =
            Some((Arc::clone(&decoded), jobs.iter().map(|job| job.bytes.clone()).collect()));
        result?;

        let pixels = |(job, planes): (&DecodeJob, &[Slice; 3])| {
            let source = source(job.meta.size, planes, kind, base);
            let (decoded, memory) = (Arc::clone(&decoded), Arc::clone(&memory));
            Pixels::Device(Box::new(DevicePixels { source, decoded, memory }))
        };
        Ok(jobs.iter().zip(&layouts).map(pixels).collect())
    }
}

/// One plane in the memory of a call.
#[derive(Debug, Clone, Copy)]
struct Slice {
    offset: usize,
    pitch: usize,
    size: Size,
}

/// Places of an image's planes, from `end` on, which moves behind them. Engines write whole rows
/// of blocks.
fn planes(size: Size, kind: [Sampling; 3], end: &mut usize) -> [Slice; 3] {
    kind.map(|sampling| {
        let size = sampling.component(size);
        let pitch = (size.width as usize).next_multiple_of(ALIGN);
        let offset = *end;
        *end = (offset + pitch * (size.height as usize).next_multiple_of(16)).next_multiple_of(512);
        Slice { offset, pitch, size }
    })
}

fn image(planes: &[Slice; 3], base: u64) -> nvjpeg::Image {
    let [y, cb, cr] = planes.map(|plane| base + plane.offset as u64);
    let [y_pitch, cb_pitch, cr_pitch] = planes.map(|plane| plane.pitch);
    nvjpeg::Image { channels: [y, cb, cr, 0], pitches: [y_pitch, cb_pitch, cr_pitch, 0] }
}

fn source(size: Size, planes: &[Slice; 3], kind: [Sampling; 3], base: u64) -> Source {
    let component = |place: usize| {
        let (slice, sampling) = (planes[place], kind[place]);
        let plane = Plane {
            address: base + slice.offset as u64,
            pitch: u32::try_from(slice.pitch).unwrap_or(u32::MAX),
            held: Region::whole(slice.size),
        };
        Component { plane, expand: (sampling.across, sampling.down) }
    };
    Source::Ycbcr { size, components: [component(0), component(1), component(2)] }
}

impl Decoder for HardwareDecoder {
    fn name(&self) -> &'static str {
        "hardware"
    }

    fn probe(&self, bytes: &[u8]) -> Result<ImageMeta, Fault> {
        self.fallback.probe(bytes)
    }

    /// All engines' time for the image, from 400 photos of 109 kB and such of 490 kB on an H200.
    fn cost(&self, meta: &ImageMeta, _region: Region) -> Option<Cost> {
        let Size { width, height } = meta.size;
        let fits = [width, height].iter().all(|side| (MIN_SIDE..=MAX_SIDE).contains(side));
        if meta.baseline.is_none() || !fits {
            return None;
        }
        let Some(engines) = self.engines.get() else {
            self.missed.store(true, Ordering::Relaxed);
            return None;
        };
        engines.as_ref().ok()?;
        Some(Cost(25_000 + meta.bytes as u64 * 278 / 1000))
    }

    fn footprint(&self, meta: &ImageMeta, _region: Region) -> u64 {
        let mut end = 0;
        if let Some(kind) = meta.baseline {
            planes(meta.size, kind, &mut end);
        }
        end as u64
    }

    fn wants_warm_up(&self) -> bool {
        self.missed.load(Ordering::Relaxed) && self.engines.get().is_none()
    }

    fn warm_up(&self) {
        self.engines.get_or_init(|| Ok(Mutex::new(Some(Warm::new(self.nvjpeg, &self.device)?))));
    }

    /// nvJPEG takes up to a second for it, and many where several processes use the engines.
    fn retire(&self) {
        if let Some(Ok(engines)) = self.engines.get() {
            drop(engines.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
    }

    fn engines(&self) -> Option<ports::Engines> {
        Some(ports::Engines {
            submits: 1,
            jobs: GROUP,
            enough: LEAST,
            least: LEAST,
            cost: GROUP_COST,
            busy: true,
        })
    }

    fn kind(&self, meta: &ImageMeta) -> u64 {
        let factors =
            meta.baseline.iter().flatten().flat_map(|factor| [factor.across, factor.down]);
        factors.fold(0, |kind, factor| kind << 4 | u64::from(factor))
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        // Engines take headers that libjpeg refuses, whose verdict counts (ERR-2).
        let is_plain = |job: &DecodeJob| {
            job.meta.baseline.is_some_and(|kind| Scan::is_plain(&job.bytes, kind))
        };
        let (jobs, others): (Vec<_>, Vec<_>) = jobs.into_iter().partition(is_plain);
        if !others.is_empty() {
            self.fallback.submit(others, sink);
        }
        if jobs.is_empty() {
            return;
        }
        let stopped = jobs.iter().all(|job| job.stop.raised());
        // Threads end such jobs at once.
        let decoded = if stopped { None } else { self.decode(&jobs).ok() };
        let Some(decoded) = decoded else {
            return self.fallback.submit(jobs, sink);
        };
        let pairs = jobs.iter().zip(decoded);
        let done = pairs.map(|(job, pixels)| Decoded { token: job.token, pixels: Ok(pixels) });
        sink.decoded(done.collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_lie_apart_and_hold_whole_blocks() {
        let [_, kind] = USUAL;
        let mut end = 0;
        let first = planes(Size { width: 101, height: 33 }, kind, &mut end);
        let second = planes(Size { width: 64, height: 64 }, kind, &mut end);
        assert_eq!(first[1].size, Size { width: 51, height: 17 });
        assert_eq!((first[0].pitch, first[1].pitch), (128, 64));
        let all: Vec<Slice> = first.into_iter().chain(second).collect();
        for pair in all.windows(2) {
            let rows = (pair[0].size.height as usize).next_multiple_of(16);
            assert!(pair[0].offset + pair[0].pitch * rows <= pair[1].offset);
        }
        assert!(end >= all[5].offset + all[5].pitch * 32);
    }
}
