//! Images a second on one thread: whole decodes beside fused random resized crops.
//!
//! `cargo bench -p forebay-codec --bench decode -- DIR [ROUNDS]` reads the JPEGs of a folder; without
//! one it makes some. The variants are interleaved image by image, so that noise of the machine
//! falls on all of them.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "sizes of photos"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Encoding, Numbers, copy_axis, jpeg_of, pass, raw_write};
use forebay_codec::{CpuBackend, Level, Options, decode_into, decoded_size, probe};
use forebay_core::coeffs::{Interpolation, Table};
use forebay_core::ports::{
    Fault, Pixels, RenderJob, RenderReport, RenderSink, Renderer, Slot, SlotMemory, Stop, Token,
};
use forebay_core::{
    Axis, Bytes, DType, ImageMeta, ImagePlan, Layout, Limits, Normalize, Region, Size, Taps, Write,
};
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
    fn rendered(&self, _: Token, slot: Box<dyn Slot>, outcome: Result<RenderReport, Fault>) {
        let report = outcome.expect("the photos are good");
        assert_eq!(report.passes, 1);
        *self.0.lock().expect("not poisoned") = Some(slot);
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
    ImagePlan { region, transpose: false, passes: vec![pass(x, axis(region.height))], write }
}

/// The region's pixels, undecorated: what the decoder alone costs.
fn crop_plan(region: Region) -> ImagePlan {
    ImagePlan {
        region,
        transpose: false,
        passes: vec![pass(copy_axis(region.width), copy_axis(region.height))],
        write: raw_write(Layout::ChannelsLast),
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
    CpuBackend::with_level(Limits::default(), level).submit(vec![job], &port);
    sink.0.lock().expect("not poisoned").take().expect("every job completes")
}

fn main() {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|a| !a.starts_with("--")).collect();
    let photos = photos(arguments.first());
    let rounds: u32 = arguments.get(1).map_or(3, |rounds| rounds.parse().expect("a number"));
    let limits = Limits::default();
    let options =
        Options { layout: Layout::ChannelsLast, apply_orientation: false, ..Options::default() };
    let names = ["probe", "whole decode", "region decode", "fused RRC, scalar", "fused RRC"];
    let mut times = [Duration::ZERO; 5];
    let mut numbers = Numbers(1);
    let mut out = Vec::new();
    let bytes = OUTPUT as usize * OUTPUT as usize * 3 * 4;
    let mut slot: Box<dyn Slot> = Box::new(Memory(vec![0; bytes]));
    for _ in 0..rounds {
        for photo in &photos {
            let mut time = |which: usize, work: &mut dyn FnMut()| {
                let start = Instant::now();
                work();
                times[which] += start.elapsed();
            };
            let region = region(&mut numbers, photo.meta.size);
            let flip = numbers.range(0, 1) == 1;
            time(0, &mut || {
                probe(&photo.bytes, &limits).expect("probed before");
            });
            out.resize(decoded_size(&photo.meta, &options).pixels() as usize * 3, 0);
            time(1, &mut || {
                decode_into(&photo.bytes, &photo.meta, &options, &limits, &mut out)
                    .expect("the photos are good");
            });
            let mut part: Option<Box<dyn Slot>> =
                Some(Box::new(Memory(vec![0; region.size().pixels() as usize * 3])));
            time(2, &mut || {
                let slot = part.take().expect("once");
                render(Level::best(), photo, crop_plan(region), slot);
            });
            for (which, level) in [(3, Level::SCALAR), (4, Level::best())] {
                let mut lent = Some(std::mem::replace(&mut slot, Box::new(Memory(vec![]))));
                let mut planned = Some(plan(region, flip));
                let mut back = None;
                time(which, &mut || {
                    let slot = lent.take().expect("once");
                    let plan = planned.take().expect("once");
                    back = Some(render(level, photo, plan, slot));
                });
                slot = back.expect("every job completes");
            }
        }
    }
    let images = f64::from(rounds) * photos.len() as f64;
    let mut stdout = std::io::stdout().lock();
    for (name, time) in names.iter().zip(times) {
        let rate = images / time.as_secs_f64();
        let line = format!("{name:20} {rate:9.1} images/s {:9.3} ms", 1e3 / rate);
        writeln!(stdout, "{line}").expect("standard output");
    }
}
