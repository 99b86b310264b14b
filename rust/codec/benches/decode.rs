//! Images a second on one thread: fused random resized crops beside whole decodes, and beside a
//! bare loop of libjpeg-turbo's region decode and a SIMD resample.
//!
//! `cargo bench -p forebay-codec --bench decode -- DIR [ROUNDS [VARIANT]]` reads the JPEGs of a
//! folder; without one it makes some. The variants are interleaved image by image, so that noise of
//! the machine falls on all of them; naming one runs it alone, for a profiler.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "sizes of photos"
)]

mod bare;
#[path = "../tests/common/mod.rs"]
mod common;

use bare::{Resample, TurboJpeg};
use common::{Encoding, Numbers, jpeg_of, pass, raw_write};
use forebay_codec::{CpuBackend, Level, Options, PixelDecoder, decode_into, decoded_size, probe};
use forebay_core::coeffs::{Interpolation, Table};
use forebay_core::ports::{
    DecodeJob, DecodeSink, Decoded, Decoder, Fault, HostBuffer, HostMemory, Pixels, RenderJob,
    RenderSink, Rendered, Renderer, Slot, SlotMemory, Stop,
};
use forebay_core::{
    Axis, Bytes, Channels, DType, ErrorKind, ImageMeta, ImagePlan, Layout, Limits, Normalize,
    Region, Size, Taps, Write,
};
use std::any::Any;
use std::io::Write as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const OUTPUT: u32 = 224;

#[derive(Debug)]
struct Memory(Vec<u8>);

impl Slot for Memory {
    fn memory(&mut self) -> SlotMemory<'_> {
        SlotMemory::Host(&mut self.0)
    }
}

/// Keeps the slot for the next image.
struct Recycle(Mutex<Option<Box<dyn Slot>>>);

impl RenderSink for Recycle {
    fn rendered(&self, done: Vec<Rendered>) {
        for Rendered { slot, outcome, .. } in done {
            assert_eq!(outcome.expect("the photos are good").passes, 1);
            *self.0.lock().expect("not poisoned") = Some(slot);
        }
    }

    fn postponed(&self, _: Vec<RenderJob>, reason: String) {
        panic!("{reason}");
    }

    fn failed(&self, _: ErrorKind, reason: String) {
        panic!("{reason}");
    }
}

struct Photo {
    bytes: Bytes,
    meta: Arc<ImageMeta>,
}

/// `RandomResizedCrop(224)`'s region: area 0.08 to 1, aspect 3/4 to 4/3.
fn region(numbers: &mut Numbers, size: Size) -> Region {
    for _ in 0..10 {
        let unit =
            |numbers: &mut Numbers| f64::from(numbers.range(0, 1 << 20)) / f64::from(1 << 20);
        let area = size.pixels() as f64 * (0.08 + 0.92 * unit(numbers));
        let aspect = ((unit(numbers) - 0.5) * 2.0 * (4.0_f64 / 3.0).ln()).exp();
        let (width, height) = ((area * aspect).sqrt() as u32, (area / aspect).sqrt() as u32);
        if (1..=size.width).contains(&width) && (1..=size.height).contains(&height) {
            let (x, y) = (size.width - width, size.height - height);
            return Region { x: numbers.range(0, x), y: numbers.range(0, y), width, height };
        }
    }
    Region::whole(size)
}

fn plan(region: Region, flip: bool) -> ImagePlan {
    let axis = |input: u32| {
        let table = Table::new(input, OUTPUT, Interpolation::Bilinear, true);
        Axis { out_len: OUTPUT, content_start: 0, taps: Taps::Weighted(table) }
    };
    let mut x = axis(region.width);
    if let (true, Taps::Weighted(table)) = (flip, &mut x.taps) {
        table.starts.reverse();
        table.counts.reverse();
        let taps = table.taps as usize;
        table.weights = table.weights.chunks_exact(taps).rev().flatten().copied().collect();
    }
    let normalize = Normalize { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
    let write = Write {
        dtype: DType::Float32,
        scale: true,
        normalize: Some(normalize),
        ..raw_write(Layout::Contiguous)
    };
    ImagePlan {
        region,
        transpose: false,
        passes: vec![pass(x, axis(region.height))],
        write,
        erase: vec![],
    }
}

fn photos(folder: Option<&String>) -> Vec<Photo> {
    let files: Vec<Vec<u8>> = if let Some(folder) = folder {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
        paths.sort();
        paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
    } else {
        let size = Size { width: 500, height: 375 };
        (0..50).map(|seed| jpeg_of(size, seed, Encoding::default())).collect()
    };
    let limits = Limits::default();
    let photo = |bytes: Vec<u8>| {
        let meta = Arc::new(probe(&bytes, &limits).ok()?);
        Some(Photo { bytes: Bytes::new(bytes), meta })
    };
    files.into_iter().filter_map(photo).collect()
}

fn render(level: Level, photo: &Photo, plan: ImagePlan, slot: Box<dyn Slot>) -> Box<dyn Slot> {
    let sink = Arc::new(Recycle(Mutex::new(None)));
    let port: Arc<dyn RenderSink> = Arc::<Recycle>::clone(&sink);
    let job = RenderJob {
        token: 0,
        pixels: Pixels::Encoded(photo.bytes.clone()),
        meta: Arc::clone(&photo.meta),
        plan: Arc::new(plan),
        slot,
        stop: Stop::default(),
    };
    Renderer::submit(&*CpuBackend::with_level(Limits::default(), level), vec![job], &port);
    sink.0.lock().expect("not poisoned").take().expect("every job completes")
}

/// Lends the same memory again and again, as a pool does.
#[derive(Clone, Debug, Default)]
struct Heap(Arc<Mutex<Vec<u8>>>);

#[derive(Debug)]
struct Lent {
    memory: Vec<u8>,
    bytes: usize,
    heap: Heap,
}

impl HostMemory for Heap {
    fn take(&self, bytes: usize) -> Result<Box<dyn HostBuffer>, Fault> {
        let mut memory = std::mem::take(&mut *self.0.lock().expect("not poisoned"));
        if memory.len() < bytes {
            memory.resize(bytes, 0);
        }
        Ok(Box::new(Lent { memory, bytes, heap: self.clone() }))
    }
}

impl HostBuffer for Lent {
    fn bytes(&self) -> &[u8] {
        &self.memory[..self.bytes]
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[..self.bytes]
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        *self.heap.0.lock().expect("not poisoned") = std::mem::take(&mut self.memory);
    }
}

/// Drops what it gets.
struct Nowhere;

impl DecodeSink for Nowhere {
    fn decoded(&self, done: Vec<Decoded>) {
        assert!(done.iter().all(|decoded| decoded.pixels.is_ok()), "the photos are good");
    }
}

/// What a GPU's renderer gets from the CPU.
fn decode_region(
    decoder: &PixelDecoder,
    sink: &Arc<dyn DecodeSink>,
    photo: &Photo,
    region: Region,
) {
    let job = DecodeJob {
        token: 0,
        bytes: photo.bytes.clone(),
        meta: Arc::clone(&photo.meta),
        region,
        channels: Channels::Rgb,
        stop: Stop::default(),
    };
    decoder.submit(vec![job], sink);
}

/// What is measured, in the order of the table.
const VARIANTS: [&str; 9] = [
    "probe",
    "libjpeg-turbo, whole",
    "libjpeg-turbo, region",
    "bare loop",
    "whole decode",
    "region decode",
    "coefficients",
    "fused, scalar",
    "fused",
];

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let photos = photos(arguments.first());
    let rounds: u32 = arguments.get(1).map_or(3, |rounds| rounds.parse().expect("a number"));
    let only = arguments.get(2).map(String::as_str);
    if let Some(only) = only {
        assert!(VARIANTS.contains(&only), "expected one of {VARIANTS:?}, got {only:?}");
    }
    let limits = Limits::default();
    let options =
        Options { layout: Layout::ChannelsLast, apply_orientation: false, ..Options::default() };
    let mut times = [Duration::ZERO; VARIANTS.len()];
    let mut numbers = Numbers(1);
    let mut out = Vec::new();
    let (mut turbo, mut resample) = (TurboJpeg::new(), Resample::new(OUTPUT));
    let bytes = OUTPUT as usize * OUTPUT as usize * 3 * 4;
    let sink: Arc<dyn DecodeSink> = Arc::new(Nowhere);
    let decoder = PixelDecoder::new(CpuBackend::new(limits), Arc::new(Heap::default()));
    let huffman = decoder.clone().leaving_coefficients();
    let mut slot: Option<Box<dyn Slot>> = Some(Box::new(Memory(vec![0; bytes])));
    for _ in 0..rounds {
        for photo in &photos {
            let mut time = |variant: &str, work: &mut dyn FnMut()| {
                if only.is_none_or(|only| only == variant) {
                    let start = Instant::now();
                    work();
                    let which = VARIANTS.iter().position(|&name| name == variant);
                    times[which.expect("a variant")] += start.elapsed();
                }
            };
            let region = region(&mut numbers, photo.meta.size);
            let flip = numbers.range(0, 1) == 1;
            time("probe", &mut || {
                probe(&photo.bytes, &limits).expect("probed before");
            });
            time("libjpeg-turbo, whole", &mut || {
                assert!(turbo.whole(&photo.bytes));
            });
            time("libjpeg-turbo, region", &mut || {
                assert!(turbo.region(&photo.bytes, region).is_some());
            });
            time("bare loop", &mut || {
                let (pixels, size, left) = turbo.region(&photo.bytes, region).expect("RGB or grey");
                resample.run(pixels, size, left);
            });
            out.resize(decoded_size(&photo.meta, &options).pixels() as usize * 3, 0);
            time("whole decode", &mut || {
                decode_into(&photo.bytes, &photo.meta, &options, &limits, &mut out)
                    .expect("the photos are good");
            });
            time("region decode", &mut || decode_region(&decoder, &sink, photo, region));
            time("coefficients", &mut || decode_region(&huffman, &sink, photo, region));
            for (variant, level) in [("fused, scalar", Level::SCALAR), ("fused", Level::best())] {
                time(variant, &mut || {
                    let lent = slot.take().expect("every job gives its slot back");
                    slot = Some(render(level, photo, plan(region, flip), lent));
                });
            }
        }
    }
    let images = f64::from(rounds) * photos.len() as f64;
    let mut stdout = std::io::stdout().lock();
    for (name, time) in VARIANTS.iter().zip(times).filter(|(_, time)| !time.is_zero()) {
        let rate = images / time.as_secs_f64();
        let line = format!("{name:24} {rate:9.1} images/s {:9.3} ms", 1e3 / rate);
        writeln!(stdout, "{line}").expect("standard output");
    }
}
