//! The stateless ops: many images at once, by threads that end with the call.

mod crop;
pub(crate) mod device;
mod wave;

use crate::ffi::{
    CropOptions, DType, DeviceAllocator, Encoded, ImageForm, NormalizeOptions, TensorOut,
};
use crate::guard::Error;
use crate::tensors::{self, Poll};
use crop::Crops;
use cxx::UniquePtr;
use device::Target;
use forebay_codec::{
    CHANNELS, Mode, Options, Pixels, decode_as, decode_into, decoded_size, probe, render_into,
};
use forebay_core::recipe::whole;
use forebay_core::{
    Channels, DType as Core, ErrorKind, Format, ImageMeta, Layout, Limits, Normalize, Orientation,
    Size, Write,
};
use forebay_engine::for_each;
use std::num::NonZero;
use std::sync::Mutex;

fn invalid(message: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Invalid, message)
}

/// 0 stands for the cores that this process may use.
fn thread_count(threads: u64) -> usize {
    match usize::try_from(threads) {
        Ok(0) => std::thread::available_parallelism().map_or(1, NonZero::get),
        Ok(threads) => threads,
        Err(_) => usize::MAX,
    }
}

pub(crate) fn parse_mode(mode: &str) -> Result<Mode, Error> {
    match mode {
        "RGB" => Ok(Mode::Rgb),
        "GRAY" => Ok(Mode::Gray),
        "RGB_ALPHA" => Ok(Mode::RgbAlpha),
        "UNCHANGED" => Ok(Mode::Unchanged),
        other => Err(invalid(format!(
            "mode must be \"RGB\", \"GRAY\", \"RGB_ALPHA\" or \"UNCHANGED\", got {other:?}"
        ))),
    }
}

pub(crate) fn parse_orientation(orientation: &str) -> Result<bool, Error> {
    match orientation {
        "apply" => Ok(true),
        "ignore" => Ok(false),
        other => {
            Err(invalid(format!("orientation must be \"apply\" or \"ignore\", got {other:?}")))
        }
    }
}

/// One image as `(C, H, W)`, uint8 or, where a file's depth is kept, uint16.
pub(crate) fn decode(
    encoded: &[u8],
    mode: Mode,
    apply_orientation: bool,
) -> Result<TensorOut, Error> {
    let limits = Limits::default();
    let meta = probe(encoded, &limits)?;
    let tensor = |pixels, dtype, channels: u8, size: Size| {
        let sizes = [u32::from(channels), size.height, size.width];
        tensors::from_bytes(pixels, dtype, sizes.map(i64::from).to_vec())
    };
    if mode != Mode::Rgb {
        let image = decode_as(encoded, &meta, mode, apply_orientation, &limits)?;
        let dtype = if image.wide { DType::UInt16 } else { DType::UInt8 };
        return Ok(tensor(image.pixels, dtype, image.channels, image.size));
    }
    // Nobody sees the warnings, and a Loader does not look behind its crop (ERR-2).
    let options = Options { layout: Layout::Contiguous, apply_orientation, to_end: false };
    let size = decoded_size(&meta, &options);
    let mut pixels = zeros(1, usize::from(CHANNELS), size, 1)?;
    decode_into(encoded, &meta, &options, &limits, &mut pixels)?;
    Ok(tensor(pixels, DType::UInt8, CHANNELS, size))
}

/// Zeros for `count` images.
#[allow(clippy::slow_vector_initialization, reason = "`vec!` ends the process without memory")]
pub(crate) fn zeros(
    count: usize,
    channels: usize,
    size: Size,
    element: usize,
) -> Result<Vec<u8>, Error> {
    let bytes = usize::try_from(size.pixels())
        .ok()
        .and_then(|pixels| pixels.checked_mul(channels * element)?.checked_mul(count))
        .filter(|bytes| isize::try_from(*bytes).is_ok());
    let mut memory = Vec::new();
    match bytes {
        Some(bytes) if memory.try_reserve_exact(bytes).is_ok() => {
            memory.resize(bytes, 0);
            Ok(memory)
        }
        _ => {
            let message = format!("cannot allocate {count} images of {channels}x{size}");
            Err(Error::new(ErrorKind::Memory, message))
        }
    }
}

/// What became of each item: its error, if any, with the item's number.
struct Outcomes(Mutex<Vec<(usize, Error)>>);

impl Outcomes {
    fn new() -> Self {
        Self(Mutex::default())
    }

    fn note(&self, item: usize, outcome: Result<(), Error>) {
        if let Err(error) = outcome {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((item, error));
        }
    }

    /// Which items succeeded; the first error by number if `strict`.
    fn ok(self, items: usize, strict: bool) -> Result<Vec<u8>, Error> {
        let errors = self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut ok = vec![1; items];
        for (item, _) in &errors {
            ok[*item] = 0;
        }
        match errors.into_iter().min_by_key(|(item, _)| *item) {
            Some((item, error)) if strict => Err(error.about(&format!("encoded[{item}]"))),
            _ => Ok(ok),
        }
    }

    /// The first error by number.
    fn first(self, items: &str) -> Result<(), Error> {
        let errors = self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        match errors.into_iter().min_by_key(|(item, _)| *item) {
            Some((item, error)) => Err(error.about(&format!("{items}[{item}]"))),
            None => Ok(()),
        }
    }
}

/// What `job` makes of the items that it does not fail at, in order; its errors go to `outcomes`.
fn collect<T: Send>(
    threads: usize,
    items: usize,
    outcomes: &Outcomes,
    job: impl Fn(usize) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let made = Mutex::new(Vec::with_capacity(items));
    for_each(threads, (0..items).collect(), |item: usize| {
        let outcome = job(item).map(|one| {
            made.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((item, one));
        });
        outcomes.note(item, outcome);
    })?;
    let mut made = made.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    made.sort_unstable_by_key(|(item, _)| *item);
    Ok(made.into_iter().map(|(_, one)| one).collect())
}

fn mask(ok: Vec<u8>) -> TensorOut {
    let items = i64::try_from(ok.len()).expect("a list's length fits an i64");
    tensors::from_bytes(ok, DType::Bool, vec![items])
}

/// Images of their own sizes; then which of them are there.
pub(crate) fn decode_images(
    encoded: &[Encoded],
    mode: &str,
    orientation: &str,
    strict: bool,
    threads: u64,
    device: UniquePtr<DeviceAllocator>,
) -> Result<Poll, Error> {
    let (mode, apply_orientation) = (parse_mode(mode)?, parse_orientation(orientation)?);
    if !device.is_null() {
        if mode != Mode::Rgb {
            let what = "mode must be \"RGB\" on a GPU".to_owned();
            return Err(Error::new(ErrorKind::Unsupported, what));
        }
        let target = Target::open(device, "decode_images")?;
        let (threads, outcomes) = (thread_count(threads), Outcomes::new());
        let images = wave::planned(encoded, threads, &outcomes, |_, meta| {
            let orientation = orientation_of(meta, apply_orientation);
            Ok(whole(meta.size, orientation, raw_write()))
        })?;
        let items = encoded.len();
        let (mut tensors, ok) = target.decode_images(&images, outcomes, items, strict, threads)?;
        tensors.push(mask(ok));
        return Ok(Poll::new(String::new(), tensors));
    }
    let slots: Vec<Mutex<Option<TensorOut>>> = encoded.iter().map(|_| Mutex::new(None)).collect();
    let outcomes = Outcomes::new();
    for_each(thread_count(threads), (0..encoded.len()).collect(), |item: usize| {
        let image = decode(encoded[item].bytes, mode, apply_orientation).map(|image| {
            *slots[item].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(image);
        });
        outcomes.note(item, image);
    })?;
    let ok = outcomes.ok(encoded.len(), strict)?;
    let channels = match mode {
        Mode::Gray => 1,
        Mode::RgbAlpha => 4,
        Mode::Rgb | Mode::Unchanged => i64::from(CHANNELS),
    };
    let missing = || tensors::from_bytes(Vec::new(), DType::UInt8, vec![channels, 0, 0]);
    let image = |slot: Mutex<Option<TensorOut>>| {
        let slot = slot.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        slot.unwrap_or_else(missing)
    };
    let mut tensors: Vec<TensorOut> = slots.into_iter().map(image).collect();
    tensors.push(mask(ok));
    Ok(Poll::new(String::new(), tensors))
}

/// A batch of crops, `(N, 3, H, W)` uint8; then which of them are there.
pub(crate) fn decode_resized_crop(
    encoded: &[Encoded],
    boxes: &[i64],
    orientation: &str,
    strict: bool,
    options: &CropOptions,
    device: UniquePtr<DeviceAllocator>,
) -> Result<Poll, Error> {
    let apply_orientation = parse_orientation(orientation)?;
    let crops = Crops::new(options, boxes, &[], encoded.len())?;
    let plan = |item: usize, meta: &ImageMeta| {
        let orientation = orientation_of(meta, apply_orientation);
        crops.of(item).plan(meta.size, orientation, raw_write()).map_err(invalid)
    };
    if !device.is_null() {
        let target = Target::open(device, "decode_resized_crop")?;
        let (threads, outcomes) = (thread_count(options.threads), Outcomes::new());
        let images = wave::planned(encoded, threads, &outcomes, plan)?;
        let items = encoded.len();
        let (batch, ok) =
            target.decode_resized_crop(&images, outcomes, &crops, items, strict, threads)?;
        return Ok(Poll::new(String::new(), vec![batch, mask(ok)]));
    }
    let limits = Limits::default();
    let outcomes = Outcomes::new();
    let mut batch = zeros(encoded.len(), 3, crops.size, 1)?;
    let items = batch.chunks_exact_mut(crops.item(1)).enumerate().collect();
    for_each(thread_count(options.threads), items, |(item, out): (usize, &mut [u8])| {
        let outcome = (|| {
            let bytes = encoded[item].bytes;
            let meta = probe(bytes, &limits)?;
            let plan = plan(item, &meta)?;
            let rendered = render_into(Pixels::Encoded(bytes), &meta, &plan, &limits, out);
            if rendered.is_err() {
                // What was rendered before the damage is no part of the result.
                out.fill(0);
            }
            Ok(rendered.map(|_| ())?)
        })();
        outcomes.note(item, outcome);
    })?;
    let ok = outcomes.ok(encoded.len(), strict)?;
    let sizes = tensors::signed(&crops.batch(encoded.len()));
    let batch = tensors::from_bytes(batch, DType::UInt8, sizes);
    Ok(Poll::new(String::new(), vec![batch, mask(ok)]))
}

/// The orientation that is undone.
fn orientation_of(meta: &ImageMeta, apply: bool) -> Orientation {
    if apply { meta.orientation } else { Orientation::default() }
}

/// Pixels as they are.
fn raw_write() -> Write {
    Write {
        channels: Channels::Rgb,
        dtype: Core::UInt8,
        layout: Layout::Contiguous,
        scale: false,
        normalize: None,
    }
}

/// Number and size of the images of a batch.
fn batch_of(form: ImageForm) -> Result<(usize, Size), Error> {
    let [count, channels, height, width] = form.shape;
    let side = |side: i64| u32::try_from(side).ok().filter(|&side| side > 0);
    let (Some(height), Some(width), 3) = (side(height), side(width), channels) else {
        let shape = form.shape;
        let message = format!("images must be (N, 3, H, W) with pixels, got {shape:?}");
        return Err(invalid(message));
    };
    Ok((usize::try_from(count).map_err(invalid)?, Size { width, height }))
}

/// What the header of an image would say that is decoded already.
fn decoded_meta(size: Size) -> ImageMeta {
    ImageMeta {
        format: Format::Png,
        size,
        orientation: Orientation::default(),
        components: 3,
        progressive: false,
        baseline: None,
        restarts: false,
        bytes: 0,
    }
}

/// Crops of decoded images, normalised: `(N, 3, H, W)`.
pub(crate) fn resized_crop_normalize(
    images: &[u8],
    form: ImageForm,
    boxes: &[i64],
    flip: &[bool],
    options: &CropOptions,
    normalize: &NormalizeOptions,
) -> Result<TensorOut, Error> {
    let (count, size) = batch_of(form)?;
    let crops = Crops::new(options, boxes, flip, count)?;
    let write = normalize_write(normalize)?;
    let meta = decoded_meta(size);
    let element = write.dtype.size();
    let mut batch = zeros(count, 3, crops.size, element)?;
    let outcomes = Outcomes::new();
    let inputs = images.chunks_exact((3 * size.pixels()).try_into().map_err(invalid)?);
    let outputs = batch.chunks_exact_mut(crops.item(element));
    let items = inputs.zip(outputs).enumerate().collect();
    let job = |(item, (image, out)): (usize, (&[u8], &mut [u8]))| {
        let outcome = (|| {
            let pixels =
                if form.interleaved { Pixels::Interleaved(image) } else { Pixels::Planar(image) };
            let plan = crops.of(item).plan(size, Orientation::default(), write);
            let plan = plan.map_err(invalid)?;
            Ok(render_into(pixels, &meta, &plan, &Limits::default(), out).map(|_| ())?)
        })();
        outcomes.note(item, outcome);
    };
    for_each(thread_count(options.threads), items, job)?;
    outcomes.first("images")?;
    let sizes = tensors::signed(&crops.batch(count));
    Ok(tensors::from_bytes(batch, write.dtype.into(), sizes))
}

fn normalize_write(options: &NormalizeOptions) -> Result<Write, Error> {
    let three = |name: &str, values: &[f64]| -> Result<[f32; 3], Error> {
        #[allow(clippy::cast_possible_truncation, reason = "normalisation is done in float32")]
        let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        values.try_into().map_err(|values: Vec<f32>| {
            invalid(format!("{name} must hold 3 numbers, got {}", values.len()))
        })
    };
    let (mean, std) = (three("mean", options.mean)?, three("std", options.std)?);
    if let Some(value) = std.iter().find(|value| !value.is_finite() || **value <= 0.0) {
        return Err(invalid(format!("std must be positive, got {value}")));
    }
    let dtype = match options.dtype {
        DType::Float16 => Core::Float16,
        DType::BFloat16 => Core::BFloat16,
        DType::Float32 => Core::Float32,
        _ => return Err(invalid("dtype must be float16, bfloat16 or float32")),
    };
    let (layout, normalize) = (Layout::Contiguous, Some(Normalize { mean, std }));
    Ok(Write { channels: Channels::Rgb, dtype, layout, scale: true, normalize })
}
