//! Encoded images of a call on a device, decoded some at a time by threads and JPEG engines.
//!
//! **Invariants**
//! - MEM-1: a call holds the pixels and scratch of one wave, however long its list is.
//! - Errors are those of the CPU's ops: what engines fail at is decoded by threads, whose word
//!   counts.

use super::Outcomes;
use crate::devices::SharedDevice;
use crate::ffi::Encoded;
use crate::guard::Error;
use forebay_codec::{decode_region_into, probe};
use forebay_core::ports::{
    DecodeJob, DecodeSink, Decoded, Decoder, HostPixels, Pixels, Slot, SlotMemory, Stop,
};
use forebay_core::{Bytes, Channels, ErrorKind, ImageMeta, ImagePlan, Limits};
use forebay_cuda::{HardwareDecoder, Lent, pack};
use forebay_engine::for_each;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a wave, unless one image takes more: some photos for every thread, and half of the
/// page-locked memory that is kept.
const WAVE: u64 = 256 << 20;
/// JPEGs of one subsampling from which on engines decode them: a call of few keeps few engines
/// busy, and costs a core as much.
const FOR_ENGINES: usize = 32;

/// A place in a tensor on the device.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) tensor: Arc<Lent>,
    pub(super) offset: usize,
    pub(super) bytes: usize,
}

impl Slot for Place {
    fn memory(&mut self) -> SlotMemory<'_> {
        SlotMemory::Device { memory: &*self.tensor, offset: self.offset, bytes: self.bytes }
    }
}

/// An encoded image that can be planned.
pub(super) struct Image<'a> {
    /// Its number in the call.
    pub(super) item: usize,
    pub(super) bytes: &'a [u8],
    pub(super) meta: Arc<ImageMeta>,
    pub(super) plan: Arc<ImagePlan>,
}

/// Items for a device, as far as they can be planned; the errors of the others go to `outcomes`.
pub(super) fn planned<'a>(
    encoded: &[Encoded<'a>],
    threads: usize,
    outcomes: &Outcomes,
    plan: impl Fn(usize, &ImageMeta) -> Result<ImagePlan, Error> + Sync,
) -> Result<Vec<Image<'a>>, Error> {
    super::collect(threads, encoded.len(), outcomes, |item| {
        let bytes = encoded[item].bytes;
        let meta = probe(bytes, &Limits::default())?;
        let plan = plan(item, &meta)?;
        Ok(Image { item, bytes, meta: Arc::new(meta), plan: Arc::new(plan) })
    })
}

/// Bytes on the device that an image takes until it is rendered; engines decode all of it.
pub(super) fn footprint(
    hardware: Option<&HardwareDecoder>,
    image: &Image<'_>,
    for_engines: bool,
) -> u64 {
    let whole = hardware.filter(|_| for_engines);
    let whole = whole.map_or(0, |hardware| hardware.footprint(&image.meta, image.plan.region));
    pack::footprint(&image.plan) + whole
}

/// Ranges of neighbours that fit a wave, or are one by itself.
pub(super) fn waves(footprints: impl Iterator<Item = u64>) -> Vec<Range<usize>> {
    let mut waves: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0_u64;
    for (place, footprint) in footprints.enumerate() {
        bytes = bytes.saturating_add(footprint);
        match waves.last_mut() {
            Some(wave) if bytes <= WAVE => wave.end = place + 1,
            _ => {
                bytes = footprint;
                waves.push(place..place + 1);
            }
        }
    }
    waves
}

/// Which of a call's images go to the JPEG engines, which this makes ready at first.
pub(super) fn for_engines(hardware: Option<&HardwareDecoder>, images: &[Image<'_>]) -> Vec<bool> {
    let none = vec![false; images.len()];
    let Some(hardware) = hardware else { return none };
    let many = |takes: &dyn Fn(&Image<'_>) -> bool| {
        let mut kinds = HashMap::<u64, usize>::new();
        for image in images.iter().filter(|image| takes(image)) {
            *kinds.entry(hardware.kind(&image.meta)).or_default() += 1;
        }
        kinds.retain(|_, count| *count >= FOR_ENGINES);
        kinds
    };
    if many(&|image| image.meta.baseline.is_some()).is_empty() {
        return none;
    }
    hardware.warm_up();
    let takes = |image: &Image<'_>| hardware.cost(&image.meta, image.plan.region).is_some();
    let many = many(&takes);
    let goes = |image| takes(image) && many.contains_key(&hardware.kind(&image.meta));
    images.iter().map(goes).collect()
}

/// What a thread does next.
enum Work {
    /// Feeds the engines until they have decoded all of these groups.
    Engines(Vec<Vec<usize>>),
    Decode(usize),
}

/// Decodes a wave. An image without pixels has its error in `outcomes`.
pub(super) fn decode(
    device: &SharedDevice,
    wave: &[Image<'_>],
    for_engines: &[bool],
    threads: usize,
    outcomes: &Outcomes,
) -> Result<Vec<Option<Pixels>>, Error> {
    let store = Arc::new(Store(wave.iter().map(|_| Mutex::new(None)).collect()));
    let decode = |place: usize| {
        let pixels = decode_here(device, &wave[place]);
        outcomes.note(wave[place].item, pixels.map(|pixels| store.put(place, pixels)));
    };
    // The engines first: they take longest, and need one thread.
    let groups = groups(device.hardware.as_ref(), wave, for_engines);
    let mut work = Vec::from_iter((!groups.is_empty()).then_some(Work::Engines(groups)));
    let places = 0..wave.len();
    work.extend(places.clone().filter(|&place| !for_engines[place]).map(Work::Decode));
    for_each(threads, work, |work| match (work, &device.hardware) {
        (Work::Decode(place), _) => decode(place),
        (Work::Engines(groups), Some(hardware)) => {
            for group in groups {
                submit(hardware, wave, &group, &store);
            }
        }
        (Work::Engines(_), None) => {}
    })?;
    let failed = places.filter(|&place| for_engines[place] && !store.has(place)).collect();
    for_each(threads, failed, decode)?;
    Ok(store.take())
}

/// By kind, as large as the engines like them.
fn groups(
    hardware: Option<&HardwareDecoder>,
    wave: &[Image<'_>],
    for_engines: &[bool],
) -> Vec<Vec<usize>> {
    let Some(hardware) = hardware else { return Vec::new() };
    let mut kinds = HashMap::<u64, Vec<usize>>::new();
    for place in (0..wave.len()).filter(|&place| for_engines[place]) {
        kinds.entry(hardware.kind(&wave[place].meta)).or_default().push(place);
    }
    let jobs = hardware.engines().map_or(1, |engines| engines.jobs);
    kinds.values().flat_map(|places| places.chunks(jobs)).map(<[usize]>::to_vec).collect()
}

fn submit(hardware: &HardwareDecoder, wave: &[Image<'_>], group: &[usize], store: &Arc<Store>) {
    let job = |&place: &usize| {
        let Image { bytes, meta, plan, .. } = &wave[place];
        DecodeJob {
            token: place as u64,
            // The engines may read it after the call has ended.
            bytes: Bytes::new(bytes.to_vec()),
            meta: Arc::clone(meta),
            region: plan.region,
            channels: Channels::Rgb,
            stop: Stop::default(),
        }
    };
    let sink: Arc<dyn DecodeSink> = Arc::<Store>::clone(store);
    hardware.submit(group.iter().map(job).collect(), &sink);
}

fn decode_here(device: &SharedDevice, image: &Image<'_>) -> Result<Pixels, Error> {
    let Image { bytes, meta, plan, .. } = image;
    let (region, channels) = (plan.region, 3);
    let len = region.width as usize * region.height as usize * channels;
    let rows = device.memory.take(len);
    let mut rows = rows.map_err(|fault| Error::new(ErrorKind::Memory, fault.reason))?;
    decode_region_into(bytes, meta, region, &Limits::default(), rows.bytes_mut())?;
    Ok(Pixels::Host(HostPixels { region, channels, rows, warnings: 0 }))
}

/// Pixels by place in the wave; what failed is missing.
struct Store(Vec<Mutex<Option<Pixels>>>);

impl Store {
    fn put(&self, place: usize, pixels: Pixels) {
        *self.0[place].lock().unwrap_or_else(PoisonError::into_inner) = Some(pixels);
    }

    fn has(&self, place: usize) -> bool {
        self.0[place].lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn take(&self) -> Vec<Option<Pixels>> {
        let slots = self.0.iter();
        slots.map(|slot| slot.lock().unwrap_or_else(PoisonError::into_inner).take()).collect()
    }
}

impl DecodeSink for Store {
    fn decoded(&self, done: Vec<Decoded>) {
        for Decoded { token, pixels } in done {
            let place = usize::try_from(token).expect("a token is a place");
            if let Ok(pixels) = pixels {
                self.put(place, pixels);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wave_is_as_many_as_fit_or_one() {
        let lengths = |footprints: &[u64]| -> Vec<usize> {
            let waves = waves(footprints.iter().copied());
            let places = waves.iter().cloned().flatten();
            assert!(places.eq(0..footprints.len()), "each is in one");
            waves.into_iter().map(|wave| wave.len()).collect()
        };
        assert!(lengths(&[]).is_empty());
        assert_eq!(lengths(&[1, 2, 3]), [3]);
        assert_eq!(lengths(&[WAVE, 1, WAVE - 1, 1]), [1, 2, 1]);
        assert_eq!(lengths(&[1, 2 * WAVE, 3 * WAVE, 1, 1]), [1, 1, 1, 2]);
        assert_eq!(lengths(&[u64::MAX, u64::MAX]), [1, 1]);
    }
}
