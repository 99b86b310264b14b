//! Plans through the executor, against the same arithmetic written the slow way.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "test pictures are small, and a failed unwrap fails the test"
)]

mod common;

use common::{
    Encoding, Numbers, copy_axis, copy_plan, crop, decode, jpeg_of, pass, picture, png, raw_write,
    render, render_pixels,
};
use forebay_codec::Level;
use forebay_core::coeffs::{Interpolation, Table};
use forebay_core::ports::{HostPixels, Pixels, Stop};
use forebay_core::{
    Axis, Blend, Bytes, ColorOp, ImagePlan, Layer, Layout, Mixture, Pass, Reduce, Region, Size,
    Taps,
};

/// Reverses the outputs of an axis.
fn flipped(axis: Axis) -> Axis {
    let taps = match axis.taps {
        Taps::Copy(sources) => Taps::Copy(sources.into_iter().rev().collect()),
        Taps::Weighted(mut table) => {
            let taps = table.taps as usize;
            table.starts.reverse();
            table.counts.reverse();
            let weights: Vec<i16> =
                table.weights.chunks_exact(taps).rev().flatten().copied().collect();
            table.weights = weights;
            Taps::Weighted(table)
        }
    };
    Axis { taps, ..axis }
}

fn random_axis(numbers: &mut Numbers, input: u32) -> Axis {
    let content = numbers.range(1, 90);
    let taps = match numbers.range(0, 3) {
        0 => Taps::Copy((0..content).map(|_| numbers.range(0, input - 1)).collect()),
        1 => Taps::Copy((0..input).collect()),
        2 => Taps::Weighted(Table::new(input, content, Interpolation::Bicubic, true)),
        _ => Taps::Weighted(Table::new(input, content, Interpolation::Bilinear, true)),
    };
    let mut axis = Axis { out_len: 0, content_start: 0, taps };
    if numbers.one_in(2) {
        axis.content_start = numbers.range(0, 5);
    }
    axis.out_len = axis.content_start + axis.content_len() + numbers.range(0, 4);
    if numbers.one_in(2) { flipped(axis) } else { axis }
}

/// One output position of an axis as (input position, weight) pairs; `None` for fill.
fn taps_of(axis: &Axis, at: usize) -> Option<(Vec<(usize, i32)>, u32)> {
    let i = at.checked_sub(axis.content_start as usize)?;
    if i >= axis.content_len() as usize {
        return None;
    }
    Some(match &axis.taps {
        Taps::Copy(sources) => (vec![(sources[i] as usize, 1)], 0),
        Taps::Weighted(table) => {
            let (start, weights) = table.row(i);
            let pairs = weights.iter().enumerate().map(|(k, &w)| (start + k, i32::from(w)));
            (pairs.collect(), table.precision)
        }
    })
}

fn weighted(taps: &(Vec<(usize, i32)>, u32), pixel: impl Fn(usize) -> u8) -> u8 {
    let sum: i32 = taps.0.iter().map(|&(at, weight)| weight * i32::from(pixel(at))).sum();
    ((sum + (1 << taps.1 >> 1)) >> taps.1).clamp(0, 255) as u8
}

/// Across, then down, each rounded to 8 bits; interleaved.
fn reference(input: &[u8], size: Size, x: &Axis, y: &Axis, fill: [u8; 3]) -> Vec<u8> {
    let width = size.width as usize;
    let mut out = Vec::new();
    for row in 0..y.out_len as usize {
        for column in 0..x.out_len as usize {
            for (channel, fill) in fill.into_iter().enumerate() {
                let across = |row: usize, taps: &(Vec<(usize, i32)>, u32)| {
                    weighted(taps, |at| input[(row * width + at) * 3 + channel])
                };
                out.push(match (taps_of(x, column), taps_of(y, row)) {
                    (Some(x), Some(y)) => weighted(&y, |row| across(row, &x)),
                    _ => fill,
                });
            }
        }
    }
    out
}

fn transposed(pixels: &[u8], size: Size) -> Vec<u8> {
    let (width, height) = (size.width as usize, size.height as usize);
    (0..width)
        .flat_map(|x| (0..height).flat_map(move |y| pixels[(y * width + x) * 3..][..3].to_vec()))
        .collect()
}

#[test]
fn random_plans_equal_the_slow_way() {
    let size = Size { width: 83, height: 61 };
    let mut numbers = Numbers(12);
    let file = jpeg_of(size, 9, Encoding::default());
    let (_, whole) = decode(&file).unwrap();
    for round in 0..150 {
        let (width, height) = (numbers.range(1, size.width), numbers.range(1, size.height));
        let region = Region {
            x: numbers.range(0, size.width - width),
            y: numbers.range(0, size.height - height),
            width,
            height,
        };
        let transpose = round % 5 == 0;
        let stored = crop(&whole, size, region);
        let (input, input_size) = if transpose {
            (transposed(&stored, region.size()), region.size().transposed())
        } else {
            (stored.clone(), region.size())
        };
        let mut one = pass(
            random_axis(&mut numbers, input_size.width),
            random_axis(&mut numbers, input_size.height),
        );
        one.fill = [1, 2, 3];
        let expected = reference(&input, input_size, &one.x, &one.y, one.fill);
        let write = raw_write(Layout::ChannelsLast);
        let plan = ImagePlan { region, transpose, passes: vec![one], write, erase: vec![] };
        let host = || {
            Pixels::Host(HostPixels {
                region,
                channels: 3,
                rows: Box::new(stored.clone()),
                warnings: 0,
            })
        };
        for level in Level::available() {
            let encoded = Pixels::Encoded(Bytes::new(file.clone()));
            let (found, report) =
                render_pixels(level, &file, encoded, &plan, &Stop::default()).unwrap();
            assert!(found == expected, "{} {plan:?}", level.name());
            assert_eq!(report.passes, 1);
            assert_eq!(report.intermediate_bytes == 0, !transpose, "the fused path keeps nothing");
            let (found, _) = render_pixels(level, &file, host(), &plan, &Stop::default()).unwrap();
            assert!(found == expected, "host pixels, {}", level.name());
        }
    }
}

/// `torchvision.transforms.v2.functional.adjust_*` on uint8 tensors of these pixels.
const COLOURS: [[u8; 3]; 6] =
    [[0, 0, 0], [255, 255, 255], [200, 30, 70], [12, 240, 99], [90, 91, 250], [128, 128, 7]];

#[test]
fn colours_equal_torchvision() {
    let size = Size { width: 6, height: 1 };
    let file = png(size, png::ColorType::Rgb, png::BitDepth::Eight, COLOURS.as_flattened());
    let adjusted = |op: ColorOp| {
        let mut plan = copy_plan(Region::whole(size));
        if matches!(op, ColorOp::Contrast(_)) {
            plan.passes[0].reduce = Some(Reduce::GrayMean);
            plan.passes.push(pass(copy_axis(6), copy_axis(1)));
        }
        plan.passes.last_mut().unwrap().color.push(op);
        let (pixels, report) = render(&file, &plan).unwrap();
        assert_eq!(report.passes as usize, plan.passes.len());
        pixels.as_chunks::<3>().0.to_vec()
    };
    for (op, expected) in GOLDEN {
        assert_eq!(adjusted(op), expected, "{op:?}");
    }
}

/// By torchvision 0.29 on torch 2.15.
const GOLDEN: [(ColorOp, [[u8; 3]; 6]); 8] = [
    (
        ColorOp::Brightness(1.3),
        [[0, 0, 0], [255, 255, 255], [255, 39, 91], [15, 255, 128], [116, 118, 255], [166, 166, 9]],
    ),
    (
        ColorOp::Brightness(0.7),
        [[0, 0, 0], [178, 178, 178], [140, 21, 49], [8, 168, 69], [63, 63, 175], [89, 89, 4]],
    ),
    (
        ColorOp::Contrast(Blend::new(0.6)),
        [
            [47, 47, 47],
            [200, 200, 200],
            [167, 65, 89],
            [54, 191, 107],
            [101, 102, 197],
            [124, 124, 51],
        ],
    ),
    (
        ColorOp::Contrast(Blend::new(1.7)),
        [[0, 0, 0], [255, 255, 255], [255, 0, 35], [0, 255, 84], [69, 71, 255], [134, 134, 0]],
    ),
    (
        ColorOp::Saturation(Blend::new(0.4)),
        [
            [0, 0, 0],
            [254, 254, 254],
            [131, 63, 79],
            [97, 189, 132],
            [100, 101, 164],
            [119, 119, 71],
        ],
    ),
    (
        ColorOp::Saturation(Blend::new(1.9)),
        [[0, 0, 0], [255, 255, 255], [255, 0, 56], [0, 255, 48], [73, 75, 255], [140, 140, 0]],
    ),
    (
        ColorOp::Hue(0.1),
        [[0, 0, 0], [255, 255, 255], [200, 92, 30], [12, 240, 236], [185, 90, 250], [55, 128, 7]],
    ),
    (
        ColorOp::Hue(-0.4),
        [[0, 0, 0], [255, 255, 255], [30, 138, 200], [240, 12, 16], [155, 250, 90], [79, 7, 128]],
    ),
];

#[test]
fn fill_is_not_coloured() {
    let size = Size { width: 2, height: 1 };
    let file = png(size, png::ColorType::Rgb, png::BitDepth::Eight, &[100; 6]);
    let mut plan = copy_plan(Region::whole(size));
    let last = plan.passes.last_mut().unwrap();
    last.x.out_len = 3;
    last.x.content_start = 1;
    last.fill = [100, 0, 50];
    last.color = vec![ColorOp::Brightness(2.0)];
    assert_eq!(render(&file, &plan).unwrap().0, [100, 0, 50, 200, 200, 200, 200, 200, 200]);
}

#[test]
fn intermediates_are_counted() {
    let size = Size { width: 40, height: 30 };
    let file = jpeg_of(size, 2, Encoding::default());
    let mut plan = copy_plan(Region::whole(size));
    plan.passes[0].reduce = Some(Reduce::GrayMean);
    plan.passes.push(pass(copy_axis(40), copy_axis(30)));
    let (_, report) = render(&file, &plan).unwrap();
    assert_eq!((report.passes, report.intermediate_bytes), (2, 40 * 30 * 3));
    let file = png(size, png::ColorType::Rgb, png::BitDepth::Eight, &picture(size, 2));
    let (_, report) = render(&file, &copy_plan(Region::whole(size))).unwrap();
    assert_eq!((report.passes, report.intermediate_bytes), (1, 40 * 30 * 3));
}

#[test]
fn raised_stop_ends_the_work() {
    // LIF-1
    let size = Size { width: 64, height: 64 };
    let encoded = |progressive| jpeg_of(size, 2, Encoding { progressive, ..Encoding::default() });
    let rgb = png(size, png::ColorType::Rgb, png::BitDepth::Eight, &picture(size, 2));
    for file in [encoded(false), encoded(true), rgb] {
        let stop = Stop::default();
        stop.raise();
        let pixels = Pixels::Encoded(Bytes::new(file.clone()));
        let plan = copy_plan(Region::whole(size));
        let fault = render_pixels(Level::best(), &file, pixels, &plan, &stop).unwrap_err();
        assert_eq!(fault.reason, "stopped");
    }
}

#[test]
fn plans_that_do_not_fit_are_faults() {
    let size = Size { width: 8, height: 8 };
    let file = jpeg_of(size, 2, Encoding::default());
    let outside = Region { x: 1, y: 0, width: 8, height: 8 };
    assert!(render(&file, &copy_plan(outside)).is_err());
    let mut plan = copy_plan(Region::whole(size));
    plan.passes[0].y.taps = Taps::Copy(vec![0, 1, 2, 3, 4, 5, 6, 8]);
    assert!(render(&file, &plan).is_err());
    plan.passes.clear();
    plan.passes.push(pass(copy_axis(9), copy_axis(8)));
    assert!(render(&file, &plan).is_err());
}

#[test]
fn mixtures_add_up_what_layers_make_of_the_same_image() {
    let size = Size { width: 41, height: 29 };
    let same =
        |color: Vec<ColorOp>| Pass { color, ..pass(copy_axis(size.width), copy_axis(size.height)) };
    let mirrored = pass(flipped(copy_axis(size.width)), copy_axis(size.height));
    let weights = [0.28_f32, 0.5, 0.22];
    let layers = vec![
        Layer { weight: weights[1], passes: vec![mirrored, same(vec![ColorOp::Invert])] },
        Layer { weight: weights[2], passes: vec![same(vec![ColorOp::Posterize(2)])] },
    ];
    let mixture = Some(Mixture { weight: weights[0], layers });
    let first = same(vec![ColorOp::Brightness(0.7)]);
    let last = Pass { mixture, ..same(vec![ColorOp::Solarize(200.0)]) };
    let region = Region::whole(size);
    let plan = ImagePlan { passes: vec![first, last], ..copy_plan(region) };
    let image = picture(size, 3);
    let bytes = png(size, ::png::ColorType::Rgb, ::png::BitDepth::Eight, &image);
    let (got, report) = render(&bytes, &plan).unwrap();
    assert_eq!(report.passes, 5);
    let base: Vec<u8> = image.iter().map(|&value| (f32::from(value) * 0.7) as u8).collect();
    for (at, &got) in got.iter().enumerate() {
        let (pixel, channel) = (at / 3, at % 3);
        let (x, y) = (pixel % 41, pixel / 41);
        let inverted = 255 - base[(y * 41 + 40 - x) * 3 + channel];
        let sum = weights[0] * f32::from(base[at]) + weights[1] * f32::from(inverted);
        let sum = (sum + weights[2] * f32::from(base[at] & 0xc0)) as u8;
        let expected = if sum >= 200 { 255 - sum } else { sum };
        assert_eq!(got, expected, "{x} {y} {channel}");
    }
}
