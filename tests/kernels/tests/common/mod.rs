//! Batches through the host's kernels and through the CPU's executor.

#![allow(dead_code, missing_docs, unreachable_pub, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod guarded;

pub use guarded::Side;

use forebay_codec::{Pixels, render_into};
use forebay_core::{
    Channels, DType, Format, ImageMeta, ImagePlan, Layout, Limits, Orientation, Region, Size, Write,
};
use forebay_cuda::pack::{Packed, Plane, RenderItem, Source, pack};
use forebay_kernel_tests::run;
use guarded::Guarded;

/// Bytes on either side of a slot that must stay as they are.
const GUARD: usize = 64;
const GUARD_BYTE: u8 = 0x5a;

/// Samples in rows that are longer than they need to be, with nothing to read beside them.
pub struct Samples {
    memory: Guarded,
    pitch: u32,
    held: Region,
}

/// How rows of samples lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// Anyhow.
    Odd,
    /// From multiples of 8 bytes on; what lies before them, or behind, cannot be read.
    Words(Side),
}

impl Samples {
    /// The part `held` of an image of `size`, from all its rows of `sample_bytes` a sample.
    pub fn new(all: &[u8], size: Size, sample_bytes: usize, held: Region, rows: Rows) -> Self {
        let line = held.width as usize * sample_bytes;
        let (pitch, side) = match rows {
            Rows::Odd => ((line + 4) | 1, Side::Behind),
            Rows::Words(side) => (line.next_multiple_of(8), side),
        };
        let mut bytes = vec![0xee; pitch * held.height as usize];
        for (y, row) in bytes.chunks_exact_mut(pitch).enumerate() {
            let from = (held.y as usize + y) * size.width as usize + held.x as usize;
            row[..line].copy_from_slice(&all[from * sample_bytes..][..line]);
        }
        let memory = Guarded::new(&bytes, side);
        Self { memory, pitch: u32::try_from(pitch).unwrap(), held }
    }

    pub fn plane(&self) -> Plane {
        Plane { address: self.memory.address(), pitch: self.pitch, held: self.held }
    }
}

/// A slot's memory, with guards.
struct SlotMemory {
    words: Vec<u64>,
    bytes: usize,
}

impl SlotMemory {
    fn new(plan: &ImagePlan) -> Self {
        let bytes = slot_bytes(plan);
        let words = (bytes + 2 * GUARD).div_ceil(8);
        Self { words: vec![u64::from_ne_bytes([GUARD_BYTE; 8]); words], bytes }
    }

    fn address(&mut self) -> u64 {
        self.words.as_mut_ptr() as u64 + GUARD as u64
    }

    fn into_bytes(self) -> Vec<u8> {
        let bytes: Vec<u8> = self.words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let (before, rest) = bytes.split_at(GUARD);
        let (slot, behind) = rest.split_at(self.bytes);
        assert!(before.iter().chain(behind).all(|&byte| byte == GUARD_BYTE), "written outside");
        slot.to_vec()
    }
}

pub fn slot_bytes(plan: &ImagePlan) -> usize {
    let pixels = usize::try_from(plan.passes.last().unwrap().size().pixels()).unwrap();
    pixels * plan.write.channels.count() * plan.write.dtype.size()
}

/// Renders a batch on the host's kernels; sources must be of live memory.
pub fn render(items: &[(Source, &ImagePlan)]) -> Vec<Vec<u8>> {
    render_packed(items).1
}

pub fn render_packed(items: &[(Source, &ImagePlan)]) -> (Packed, Vec<Vec<u8>>) {
    let mut slots: Vec<SlotMemory> = items.iter().map(|(_, plan)| SlotMemory::new(plan)).collect();
    let pairs = items.iter().zip(&mut slots);
    let items: Vec<RenderItem<'_>> = pairs
        .map(|(&(source, plan), slot)| RenderItem {
            source,
            plan,
            slot: slot.address(),
            slot_bytes: slot.bytes,
        })
        .collect();
    let packed = pack(&items, &[]);
    assert_eq!(packed.refused, []);
    // SAFETY: the sources borrow `Samples` that outlive this call by this function's contract, and
    // each slot is memory of its own.
    unsafe { run(&packed) };
    (packed, slots.into_iter().map(SlotMemory::into_bytes).collect())
}

/// What a header of such an image would say.
pub fn meta(size: Size, orientation: Orientation) -> ImageMeta {
    ImageMeta {
        format: Format::Jpeg,
        size,
        orientation,
        components: 3,
        progressive: false,
        baseline: None,
        restarts: false,
        bytes: 0,
    }
}

/// What the CPU makes of it.
pub fn oracle(pixels: Pixels<'_>, size: Size, plan: &ImagePlan) -> Vec<u8> {
    let mut slot = vec![0; slot_bytes(plan)];
    let meta = meta(size, Orientation::default());
    render_into(pixels, &meta, plan, &Limits::default(), &mut slot).unwrap();
    slot
}

/// An image in memory, interleaved.
pub struct Image {
    pub size: Size,
    pub channels: usize,
    pub pixels: Vec<u8>,
}

impl Image {
    pub fn samples(&self, held: Region) -> Samples {
        Samples::new(&self.pixels, self.size, self.channels, held, Rows::Odd)
    }

    /// Each channel by itself.
    pub fn planes(&self, held: Region) -> Vec<Samples> {
        let channel = |channel| -> Vec<u8> {
            self.pixels.iter().skip(channel).step_by(self.channels).copied().collect()
        };
        (0..self.channels)
            .map(|n| Samples::new(&channel(n), self.size, 1, held, Rows::Odd))
            .collect()
    }

    pub fn expected(&self, plan: &ImagePlan) -> Vec<u8> {
        oracle(Pixels::Interleaved(&self.pixels), self.size, plan)
    }
}

/// One plane is interleaved, or the only channel.
fn source(samples: &[Samples], channels: usize) -> Source {
    match samples {
        [red, green, blue] => Source::Planar([red, green, blue].map(Samples::plane)),
        [gray] if channels == 1 => Source::Gray(gray.plane()),
        [rgb] => Source::Rgb(rgb.plane()),
        _ => panic!("no image has {} planes", samples.len()),
    }
}

/// Renders all at once, from sources that hold the whole image and from ones that hold the region
/// only, interleaved and in planes, and compares each with the CPU's slot.
pub fn check(batch: &[(&Image, &ImagePlan)]) {
    for (is_whole, is_planar) in [(true, false), (false, false), (true, true), (false, true)] {
        let samples = |(image, plan): &(&Image, &ImagePlan)| {
            let held = if is_whole { Region::whole(image.size) } else { plan.region };
            if is_planar { image.planes(held) } else { vec![image.samples(held)] }
        };
        let samples: Vec<Vec<Samples>> = batch.iter().map(samples).collect();
        let items: Vec<(Source, &ImagePlan)> = samples
            .iter()
            .zip(batch)
            .map(|(samples, (image, plan))| (source(samples, image.channels), *plan))
            .collect();
        for ((image, plan), slot) in batch.iter().zip(render(&items)) {
            assert!(slot == image.expected(plan), "{} {plan:?}", image.size);
        }
    }
}

/// Every element type and layout of three channels, some normalised.
pub fn writes() -> Vec<Write> {
    let imagenet =
        forebay_core::Normalize { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
    let mut writes = Vec::new();
    for dtype in [DType::UInt8, DType::Float16, DType::BFloat16, DType::Float32] {
        for layout in [Layout::Contiguous, Layout::ChannelsLast] {
            for (scale, normalize) in [(false, None), (true, None), (true, Some(imagenet))] {
                writes.push(Write { channels: Channels::Rgb, dtype, layout, scale, normalize });
            }
        }
    }
    writes
}
