//! PIX-3 on pixels in memory: the kernels write what the CPU writes, byte for byte.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "../../../rust/codec/tests/common/mod.rs"]
mod codec;
mod common;

use codec::{Numbers, copy_axis, pass, picture, raw_write};
use common::{Image, check, writes};
use forebay_core::coeffs::{Interpolation, Table};
use forebay_core::{
    Axis, Blend, Channels, ColorOp, DType, Erase, Fill, ImagePlan, Layout, Pass, Reduce, Region,
    Size, Taps, Write,
};
use forebay_cuda::pack::{RenderItem, Source, pack};
use forebay_kernel_tests::{run_at_once, scratch};

fn image(width: u32, height: u32, seed: u64) -> Image {
    let size = Size { width, height };
    Image { size, channels: 3, pixels: picture(size, seed) }
}

fn mask(width: u32, height: u32, seed: u64) -> Image {
    let size = Size { width, height };
    let pixels = Numbers(seed).bytes(usize::try_from(size.pixels()).unwrap());
    Image { size, channels: 1, pixels }
}

fn weighted(input: u32, output: u32, interpolation: Interpolation) -> Axis {
    let table = Table::new(input, output, interpolation, true);
    Axis { out_len: output, content_start: 0, taps: Taps::Weighted(table) }
}

fn resized(input: Size, output: Size) -> Pass {
    let axis = |input, output| weighted(input, output, Interpolation::Bilinear);
    pass(axis(input.width, output.width), axis(input.height, output.height))
}

/// Copies in a random order, copies all, flips, or resamples; some with fill around.
fn random_axis(numbers: &mut Numbers, input: u32) -> Axis {
    let content = numbers.range(1, 90);
    let taps = match numbers.range(0, 4) {
        0 => Taps::Copy((0..content).map(|_| numbers.range(0, input - 1)).collect()),
        1 => Taps::Copy((0..input).collect()),
        2 => Taps::Copy((0..input).rev().collect()),
        3 => weighted(input, content, Interpolation::Bicubic).taps,
        _ => weighted(input, content, Interpolation::Bilinear).taps,
    };
    let mut axis = Axis { out_len: 0, content_start: 0, taps };
    if numbers.one_in(2) {
        axis.content_start = numbers.range(0, 5);
    }
    axis.out_len = axis.content_start + axis.content_len() + numbers.range(0, 4);
    axis
}

fn random_region(numbers: &mut Numbers, size: Size) -> Region {
    let (width, height) = (numbers.range(1, size.width), numbers.range(1, size.height));
    let (x, y) = (numbers.range(0, size.width - width), numbers.range(0, size.height - height));
    Region { x, y, width, height }
}

fn upright(region: Region, transpose: bool) -> Size {
    if transpose { region.size().transposed() } else { region.size() }
}

fn random_plan(numbers: &mut Numbers, size: Size, write: Write) -> ImagePlan {
    let region = random_region(numbers, size);
    let transpose = numbers.one_in(3);
    let mut input = upright(region, transpose);
    let mut passes = Vec::new();
    for _ in 0..numbers.range(1, 3) {
        let mut one = pass(random_axis(numbers, input.width), random_axis(numbers, input.height));
        one.fill = [1, 2, 3];
        one.color = random_color(numbers);
        one.color.retain(|op| write.channels == Channels::Rgb || !op.mixes_channels());
        one.reduce =
            [None, Some(Reduce::GrayMean), Some(Reduce::Histogram)][numbers.range(0, 2) as usize];
        input = one.size();
        passes.push(one);
    }
    let erase = (0..numbers.range(0, 2)).map(|_| Erase {
        region: random_region(numbers, input),
        fill: if numbers.one_in(2) {
            Fill::Value([numbers.range(0, 255) as f32, 7.0, 255.0])
        } else {
            let key = [numbers.range(0, 1 << 30), numbers.range(0, 1 << 30)];
            Fill::Noise { key, normalize: numbers.one_in(2) }
        },
    });
    let erase = erase.collect();
    ImagePlan { region, transpose, passes, write, erase }
}

fn random_color(numbers: &mut Numbers) -> Vec<ColorOp> {
    let hundredths = |numbers: &mut Numbers, low, high| {
        f32::from(u16::try_from(numbers.range(low, high)).unwrap()) / 100.0
    };
    let levels = if numbers.one_in(2) { ColorOp::Autocontrast } else { ColorOp::Equalize };
    (0..numbers.range(0, 3))
        .map(|_| match numbers.range(0, 9) {
            0 => ColorOp::Brightness(hundredths(numbers, 0, 200)),
            1 => ColorOp::Contrast(Blend::new(f64::from(hundredths(numbers, 0, 200)))),
            2 => ColorOp::Saturation(Blend::new(f64::from(hundredths(numbers, 0, 200)))),
            3 => ColorOp::Hue(hundredths(numbers, 0, 100) - 0.5),
            // One kind of tables a pass: recipes have them first, behind a pass that counts.
            9 => levels,
            4 => ColorOp::Grayscale,
            5 => ColorOp::Invert,
            6 => ColorOp::Posterize(u8::try_from(numbers.range(0, 8)).unwrap()),
            7 => ColorOp::Solarize(hundredths(numbers, 0, 30_000)),
            _ => ColorOp::Permute([[2, 0, 1], [1, 0, 2]][numbers.range(0, 1) as usize]),
        })
        .collect()
}

#[test]
fn ragged_batches_equal_the_cpu() {
    let mut numbers = Numbers(7);
    let writes = writes();
    for _ in 0..40 {
        let images: Vec<Image> = (0..numbers.range(1, 9))
            .map(|_| image(numbers.range(1, 80), numbers.range(1, 80), numbers.next()))
            .collect();
        let plans: Vec<ImagePlan> = images
            .iter()
            .map(|image| {
                let write = writes[numbers.range(0, 23) as usize];
                random_plan(&mut numbers, image.size, write)
            })
            .collect();
        check(&images.iter().zip(&plans).collect::<Vec<_>>());
    }
}

#[test]
fn every_element_type_and_layout_equals_the_cpu() {
    let image = image(61, 47, 3);
    let target = Size { width: 33, height: 29 };
    let plan = |write| ImagePlan {
        erase: vec![],
        region: Region::whole(image.size),
        transpose: false,
        passes: vec![resized(image.size, target)],
        write,
    };
    let plans: Vec<ImagePlan> = writes().into_iter().map(plan).collect();
    check(&plans.iter().map(|plan| (&image, plan)).collect::<Vec<_>>());
}

#[test]
fn images_of_one_channel_equal_the_cpu() {
    let mut numbers = Numbers(5);
    let image = mask(53, 38, 4);
    for (channels, dtype) in [
        (Channels::Index, DType::UInt8),
        (Channels::Gray, DType::UInt8),
        (Channels::Gray, DType::Float32),
    ] {
        let write = Write { channels, dtype, ..raw_write(Layout::Contiguous) };
        let plans: Vec<ImagePlan> =
            (0..20).map(|_| random_plan(&mut numbers, image.size, write)).collect();
        check(&plans.iter().map(|plan| (&image, plan)).collect::<Vec<_>>());
    }
}

#[test]
fn extreme_sizes_equal_the_cpu() {
    // A row of 9000 pixels is more than a block of threads keeps.
    let sizes = [(1, 1), (1, 500), (500, 1), (2, 3), (700, 300), (9000, 3)];
    let targets = [(1, 1), (1, 300), (300, 1), (257, 3), (40, 2)];
    for (width, height) in sizes {
        let image = image(width, height, 11);
        let plans: Vec<ImagePlan> = targets
            .into_iter()
            .map(|(width, height)| ImagePlan {
                erase: vec![],
                region: Region::whole(image.size),
                transpose: false,
                passes: vec![resized(image.size, Size { width, height })],
                write: raw_write(Layout::ChannelsLast),
            })
            .collect();
        check(&plans.iter().map(|plan| (&image, plan)).collect::<Vec<_>>());
    }
}

/// Narrow and wide tiles, several of them, and rows in pieces.
#[test]
fn threads_at_once_do_what_they_do_in_turn() {
    for (input, width) in [(300, 300), (300, 17), (700, 513), (9000, 40), (9000, 1)] {
        let image = image(input, 37, 12);
        let target = Size { width, height: 30 };
        let plan = ImagePlan {
            erase: vec![],
            region: Region::whole(image.size),
            transpose: false,
            passes: vec![resized(image.size, target)],
            write: raw_write(Layout::ChannelsLast),
        };
        let samples = image.samples(plan.region);
        let mut slot = vec![0; 3 * usize::try_from(target.pixels()).unwrap()];
        let (address, slot_bytes) = (slot.as_mut_ptr() as u64, slot.len());
        let source = Source::Rgb(samples.plane());
        let packed = pack(&[RenderItem { source, plan: &plan, slot: address, slot_bytes }], &[]);
        // SAFETY: samples and slot are live memory.
        unsafe { run_at_once(&packed, &mut scratch(packed.scratch_bytes)) };
        assert!(slot == image.expected(&plan), "{input} to {width}");
    }
}

/// `ColorJitter`'s four operations in all orders, as the planner makes passes of them.
#[test]
fn contrast_at_every_place_equals_the_cpu() {
    let image = image(70, 45, 8);
    let ops = [
        ColorOp::Brightness(1.3),
        ColorOp::Contrast(Blend::new(0.6)),
        ColorOp::Saturation(Blend::new(1.7)),
        ColorOp::Hue(-0.2),
    ];
    let target = Size { width: 40, height: 50 };
    let mut plans = Vec::new();
    for rotation in 0..4 {
        for is_reversed in [false, true] {
            let mut order = ops;
            order.rotate_left(rotation);
            if is_reversed {
                order.reverse();
            }
            let mut passes = vec![resized(image.size, target)];
            for op in order {
                if matches!(op, ColorOp::Contrast(_)) {
                    passes.last_mut().unwrap().reduce = Some(Reduce::GrayMean);
                    passes.push(pass(copy_axis(target.width), copy_axis(target.height)));
                }
                passes.last_mut().unwrap().color.push(op);
            }
            let region = Region::whole(image.size);
            let write = raw_write(Layout::Contiguous);
            plans.push(ImagePlan { region, transpose: false, passes, write, erase: vec![] });
        }
    }
    check(&plans.iter().map(|plan| (&image, plan)).collect::<Vec<_>>());
}

#[test]
fn every_colour_operation_equals_the_cpu_on_many_colours() {
    // 52 levels of each channel, 0 and 255 among them.
    let levels = || (0..=255_u8).step_by(5);
    let colours =
        levels().flat_map(|r| levels().flat_map(move |g| levels().map(move |b| [r, g, b])));
    let pixels: Vec<u8> = colours.flatten().collect();
    let size = Size { width: 52 * 52, height: 52 };
    let image = Image { size, channels: 3, pixels };
    let ops = [
        ColorOp::Brightness(0.37),
        ColorOp::Brightness(1.9),
        ColorOp::Contrast(Blend::new(0.5)),
        ColorOp::Saturation(Blend::new(0.0)),
        ColorOp::Saturation(Blend::new(1.73)),
        ColorOp::Hue(0.11),
        ColorOp::Hue(-0.5),
        ColorOp::Hue(0.0),
    ];
    for op in ops {
        let mut one = pass(copy_axis(size.width), copy_axis(size.height));
        one.color = vec![op];
        let plan = ImagePlan {
            erase: vec![],
            region: Region::whole(size),
            transpose: false,
            passes: vec![one],
            write: raw_write(Layout::Contiguous),
        };
        check(&[(&image, &plan)]);
    }
}

#[test]
fn content_may_be_empty() {
    let image = image(9, 8, 2);
    let no_weights =
        Table { taps: 0, precision: 0, starts: vec![], counts: vec![], weights: vec![] };
    let empty = [Taps::Copy(vec![]), Taps::Weighted(no_weights)];
    let axis = |out_len, taps| Axis { out_len, content_start: 0, taps };
    let full = |input| weighted(input, 7, Interpolation::Bilinear).taps;
    let pairs = empty.iter().flat_map(|taps| {
        let taps = || taps.clone();
        [(taps(), full(8)), (full(9), taps()), (taps(), taps())]
    });
    for (x, y) in pairs {
        let mut one = pass(axis(12, x), axis(10, y));
        one.fill = [9, 8, 7];
        one.color = vec![ColorOp::Brightness(2.0)];
        let plan = ImagePlan {
            erase: vec![],
            region: Region::whole(image.size),
            transpose: false,
            passes: vec![one],
            write: raw_write(Layout::Contiguous),
        };
        check(&[(&image, &plan)]);
    }
}
