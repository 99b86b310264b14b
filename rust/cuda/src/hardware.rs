//! The JPEG engines of a GPU, many images at once.
//!
//! The engines decode whole baseline images to their components, bit for bit as libjpeg's accurate
//! inverse DCT does; upsampling and colour are the renderer's. One call keeps all engines busy and
//! returns when they are nearly done; it keeps a core busy, too, and calls from a second thread gain
//! nothing. A call whose images have different subsampling takes four times as long an image, so
//! it gets images of one kind.

use crate::Error;
use crate::driver::{Device, DeviceBuffer, Event, Stream, Wait};
use crate::nvjpeg::{self, Backend, BatchState, Handle, NvJpeg, OutputFormat};
use crate::pack::{Component, Plane, Source};
use crate::pixels::DevicePixels;
use crate::pool::Pool;
use forebay_core::ports::{Cost, DecodeJob, DecodeSink, Decoder, Fault, Pixels, Stage};
use forebay_core::{Bytes, ImageMeta, Region, Sampling, Size};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Images of one submit, which is a call for each kind of subsampling. A call of 14 images takes
/// 84 us an image, one of 56 takes 57, one of 128 takes 56 (H200).
const GROUP: usize = 128;
/// Planes and their rows begin at multiples of this.
const ALIGN: usize = 64;
/// Larger sides are not the engines'.
const MAX_SIDE: u32 = 16_384;
/// Smaller ones are quicker on a core.
const MIN_SIDE: u32 = 64;

/// The engines as a decoder.
pub struct HardwareDecoder {
    nvjpeg: &'static NvJpeg,
    device: Arc<Device>,
    memory: Arc<Pool<DeviceBuffer>>,
    /// Decodes what the engines refuse, and reads headers.
    fallback: Arc<dyn Decoder>,
    /// Set when they are warm; why they are not used, if so.
    engines: OnceLock<Result<Engines, Error>>,
}

/// The engines, warm: that takes a quarter of a second.
struct Engines {
    stream: Stream,
    /// Used in turn: a state that is used again before its last call is done hangs nvJPEG.
    states: Mutex<[State; 2]>,
}

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

impl Engines {
    fn new(nvjpeg: &'static NvJpeg, device: &Arc<Device>) -> Result<Self, Error> {
        let handle = Handle::new(nvjpeg, device, Backend::Hardware)?;
        if handle.engines()?.is_some_and(|engines| engines.count == 0) {
            return Err(Error::Invalid { what: format!("{device} has no JPEG engines") });
        }
        let state = || -> Result<State, Error> {
            Ok(State { batch: BatchState::new(&handle)?, last: None })
        };
        Ok(Self { stream: Stream::new(device)?, states: Mutex::new([state()?, state()?]) })
    }
}

impl Drop for Engines {
    fn drop(&mut self) {
        let states = self.states.get_mut().unwrap_or_else(PoisonError::into_inner);
        for state in states {
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
        }
    }

    /// Decodes images of one kind; their pixels in order.
    fn decode(&self, jobs: &[DecodeJob], kind: [Sampling; 3]) -> Result<Vec<Pixels>, Error> {
        let engines = match self.engines.get() {
            Some(Ok(engines)) => engines,
            Some(Err(error)) => return Err(error.clone()),
            None => return Err(Error::Invalid { what: "the engines are not warm".to_owned() }),
        };
        let mut end = 0;
        let layouts: Vec<[Slice; 3]> =
            jobs.iter().map(|job| planes(job.meta.size, kind, &mut end)).collect();
        let memory = Arc::new(self.memory.loan(end)?);
        let base = memory.pointer();
        let images: Vec<nvjpeg::Image> = layouts.iter().map(|planes| image(planes, base)).collect();
        let encoded: Vec<&[u8]> = jobs.iter().map(|job| &*job.bytes).collect();

        let mut states = engines.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.rotate_left(1);
        let state = &mut states[0];
        if let Some((event, _bytes)) = state.last.take() {
            event.synchronize()?;
        }
        let decoded = Arc::new(Event::new(&self.device, Wait::Block)?);
        state.batch.initialize(jobs.len(), 1, OutputFormat::Yuv)?;
        // SAFETY: `last` keeps the bytes until the event; the planes have room (`planes`), lie
        // in memory of ours alone, and are kept until the event, too.
        let result = unsafe { state.batch.decode(&encoded, &images, &engines.stream) };
        decoded.record(&engines.stream)?;
        memory.use_until(&decoded);
        state.last =
            Some((Arc::clone(&decoded), jobs.iter().map(|job| job.bytes.clone()).collect()));
        drop(states);
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
        let warm = matches!(self.engines.get(), Some(Ok(_)));
        if !warm || meta.baseline.is_none() || !fits {
            return None;
        }
        Some(Cost(25_000 + meta.bytes as u64 * 278 / 1000))
    }

    fn preferred_jobs(&self) -> usize {
        GROUP
    }

    fn warm_up(&self) {
        self.engines.get_or_init(|| Engines::new(self.nvjpeg, &self.device));
    }

    /// One call at a time, while another thread prepares the next or hands out the last one's.
    fn lanes(&self) -> Option<usize> {
        Some(2)
    }

    fn submit(&self, jobs: Vec<DecodeJob>, sink: &Arc<dyn DecodeSink>) {
        let mut kinds: Vec<(Option<[Sampling; 3]>, Vec<DecodeJob>)> = Vec::new();
        for job in jobs {
            match kinds.iter_mut().find(|(kind, _)| *kind == job.meta.baseline) {
                Some((_, jobs)) => jobs.push(job),
                None => kinds.push((job.meta.baseline, vec![job])),
            }
        }
        // All at once: the engine takes the time of the whole call for that of its images.
        let mut done = Vec::new();
        for (kind, jobs) in kinds {
            let stopped = jobs.iter().all(|job| job.stop.raised());
            let decoded = match kind {
                _ if stopped => Err("stopped".to_owned()),
                Some(kind) => self.decode(&jobs, kind).map_err(|error| error.to_string()),
                None => Err("not a file for the engines".to_owned()),
            };
            match decoded {
                Ok(pixels) => done.extend(jobs.iter().map(|job| job.token).zip(pixels)),
                Err(_) if !stopped => self.fallback.submit(jobs, sink),
                Err(reason) => {
                    for job in jobs {
                        sink.decoded(job.token, Err(Fault::new(Stage::Decode, &reason)));
                    }
                }
            }
        }
        for (token, pixels) in done {
            sink.decoded(token, Ok(pixels));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_lie_apart_and_hold_whole_blocks() {
        let half = Sampling { across: 2, down: 2 };
        let kind = [Sampling { across: 1, down: 1 }, half, half];
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
