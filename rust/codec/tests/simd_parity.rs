//! Every SIMD leaf equals the scalar oracle, byte for byte, on random shapes.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "test pictures are small, and a failed unwrap fails the test"
)]

mod common;

use common::Numbers;
use forebay_codec::Level;
use forebay_codec::pixel::color::{Program, Reduced, gray_sum};
use forebay_codec::pixel::gather::{self, Places, Whole};
use forebay_codec::pixel::horizontal::{self, Columns};
use forebay_codec::pixel::luma;
use forebay_codec::pixel::vertical::{self, Ring};
use forebay_codec::pixel::write::Writer;
use forebay_core::coeffs::{Interpolation, Table};
use forebay_core::{
    Axis, Blend, Channels, ColorOp, DType, Gather, Layout, Normalize, Size, Taps, Warp, Write,
};

fn filter(numbers: &mut Numbers) -> Interpolation {
    if numbers.one_in(2) { Interpolation::Bilinear } else { Interpolation::Bicubic }
}

fn random_table(numbers: &mut Numbers, input: u32, output: u32) -> Table {
    let antialias = !numbers.one_in(4);
    let mut table = Table::new(input, output, filter(numbers), antialias);
    if numbers.one_in(4) {
        // Extreme weights of either sign, and pixels of 0 and 255, reach both clamps.
        table.weights.iter_mut().for_each(|weight| *weight = numbers.next() as i16);
        table.precision = numbers.range(8, 18);
    }
    table
}

fn pixels(numbers: &mut Numbers, len: usize) -> Vec<u8> {
    let mut bytes = numbers.bytes(len);
    if numbers.one_in(2) {
        for byte in &mut bytes {
            *byte = if *byte < 128 { 0 } else { 255 };
        }
    }
    bytes
}

/// The same bytes at an odd address, with nothing behind them.
fn unaligned(bytes: &[u8]) -> Vec<u8> {
    [[0].as_slice(), bytes].concat()
}

fn check_horizontal<const C: usize>(seed: u64) {
    let mut numbers = Numbers(seed);
    for _ in 0..600 {
        let (input, output) = (numbers.range(1, 200), numbers.range(1, 130));
        let taps = Taps::Weighted(random_table(&mut numbers, input, output));
        let mut columns = Columns::default();
        columns.prepare(&Axis { out_len: output, content_start: 0, taps });
        let row = unaligned(&pixels(&mut numbers, C * input as usize));
        let run = |level| {
            let mut out = vec![0; C * output as usize];
            horizontal::resample::<C>(level, &row[1..], &columns, &mut out);
            out
        };
        for level in Level::available() {
            assert_eq!(run(level), run(Level::SCALAR), "{} {input} -> {output}", level.name());
        }
    }
}

#[test]
fn horizontal_leaves_equal_the_scalar_one() {
    check_horizontal::<3>(1);
    check_horizontal::<1>(2);
}

#[test]
fn luma_leaves_equal_the_scalar_one_and_pillows_formula() {
    let mut numbers = Numbers(8);
    for _ in 0..300 {
        let count = numbers.range(0, 90) as usize;
        let behind = numbers.range(0, 5) as usize;
        let row = unaligned(&pixels(&mut numbers, 3 * count + behind));
        let grey = row[1..].as_chunks::<3>().0.iter().take(count).map(|&[red, green, blue]| {
            let thousandths = [(19_595, red), (38_470, green), (7_471, blue)];
            let sum: u32 = thousandths.iter().map(|&(part, of)| part * u32::from(of)).sum();
            ((sum + 32_768) / 65_536) as u8
        });
        let grey: Vec<u8> = grey.collect();
        for level in Level::available() {
            let mut row = row.clone();
            luma::shrink(level, &mut row[1..], count);
            assert_eq!(row[1..=count], grey, "{} {count}", level.name());
        }
    }
}

#[test]
fn vertical_leaves_equal_the_scalar_one() {
    let mut numbers = Numbers(2);
    for _ in 0..600 {
        let (rows, bytes) = (numbers.range(1, 12) as usize, numbers.range(1, 300) as usize);
        let precision = numbers.range(8, 20);
        let weights: Vec<i16> = (0..rows).map(|_| numbers.next() as i16).collect();
        let first = numbers.range(0, 40) as usize;
        let mut ring = Ring::default();
        ring.prepare(rows + numbers.range(0, 3) as usize, bytes);
        for row in first..first + rows {
            ring.row_mut(row).copy_from_slice(&pixels(&mut numbers, bytes));
        }
        let run = |level| {
            let mut out = vec![0; bytes + 1];
            vertical::weighted(level, &ring, first, &weights, precision, &mut out[1..]);
            out
        };
        for level in Level::available() {
            assert_eq!(run(level), run(Level::SCALAR), "{} {rows} x {bytes}", level.name());
        }
    }
}

fn random_write(numbers: &mut Numbers) -> Write {
    let dtypes = [DType::UInt8, DType::Float16, DType::BFloat16, DType::Float32, DType::Float32];
    let dtype = dtypes[numbers.range(0, 4) as usize];
    let real = dtype != DType::UInt8;
    let unit = |numbers: &mut Numbers| numbers.range(1, 1000) as f32 / 1000.0;
    let normalize = (real && !numbers.one_in(4)).then(|| Normalize {
        mean: std::array::from_fn(|_| unit(numbers)),
        std: std::array::from_fn(|_| unit(numbers)),
    });
    Write {
        channels: if numbers.one_in(8) { Channels::Gray } else { Channels::Rgb },
        dtype,
        layout: if numbers.one_in(2) { Layout::Contiguous } else { Layout::ChannelsLast },
        scale: real && !numbers.one_in(8),
        normalize,
    }
}

#[test]
fn write_leaves_equal_the_scalar_one_and_the_oracle() {
    let mut numbers = Numbers(3);
    for _ in 0..400 {
        let write = random_write(&mut numbers);
        let size = Size { width: numbers.range(1, 120), height: numbers.range(1, 3) };
        let channels = write.channels.count();
        let writer = Writer::new(&write).expect("an image's element type");
        let row = pixels(&mut numbers, size.width as usize * channels);
        let y = numbers.range(0, size.height - 1) as usize;
        let elements = size.pixels() as usize * channels;
        let run = |level| {
            let mut out = vec![0; 1 + elements * write.dtype.size()];
            writer.row(level, y, size, &row, &mut out[1..]);
            out
        };
        let scalar = run(Level::SCALAR);
        for level in Level::available() {
            assert_eq!(run(level), scalar, "{} {write:?} {size}", level.name());
        }
        if write.dtype == DType::Float32 {
            check_oracle(&write, size, y, &row, &scalar[1..]);
        }
    }
}

/// Each element is `Write::value` of its pixel, at the place that the layout says.
fn check_oracle(write: &Write, size: Size, y: usize, row: &[u8], out: &[u8]) {
    let (width, height) = (size.width as usize, size.height as usize);
    let channels = write.channels.count();
    for (i, &pixel) in row.iter().enumerate() {
        let (x, c) = (i / channels, i % channels);
        let at = match write.layout {
            Layout::Contiguous => (c * height + y) * width + x,
            Layout::ChannelsLast => (y * width + x) * channels + c,
        };
        let bytes: [u8; 4] = out[4 * at..4 * at + 4].try_into().unwrap();
        assert_eq!(f32::from_ne_bytes(bytes).to_bits(), write.value(pixel, c).to_bits());
    }
}

#[test]
fn colour_leaves_equal_the_scalar_one() {
    let mut numbers = Numbers(4);
    for _ in 0..60 {
        let factor = numbers.range(0, 2500) as f32 / 1000.0;
        let turns = numbers.range(0, 1000) as f32 / 1000.0 - 0.5;
        let ops = [
            ColorOp::Brightness(factor),
            ColorOp::Saturation(Blend::new(f64::from(factor))),
            ColorOp::Hue(turns),
            ColorOp::Contrast(Blend::new(f64::from(factor))),
        ];
        let mean = numbers.range(0, 25500) as f32 / 100.0;
        let reduced = Reduced { gray_mean: mean, ..Reduced::default() };
        let program = Program::new(&ops[numbers.range(0, 3) as usize..], &reduced);
        let width = numbers.range(1, 300) as usize;
        let row = pixels(&mut numbers, 3 * width);
        let run = |level| {
            let mut out = row.clone();
            program.apply(level, &mut out);
            (out, gray_sum::<3>(level, &row))
        };
        for level in Level::available() {
            assert_eq!(run(level), run(Level::SCALAR), "{}", level.name());
        }
    }
}

#[test]
fn gather_leaves_equal_the_scalar_one() {
    let mut numbers = Numbers(5);
    for _ in 0..200 {
        let size = Size { width: numbers.range(1, 90), height: numbers.range(1, 60) };
        let input = pixels(&mut numbers, 3 * size.pixels() as usize);
        let mut part = |most: f32| (numbers.range(0, 2000) as f32 / 1000.0 - 1.0) * most;
        let row = |part: &mut dyn FnMut(f32) -> f32| [part(0.1), part(0.1), part(1.5)];
        let rows = [row(&mut part), row(&mut part)];
        let projection = [part(0.02), part(0.02)];
        let blur = part(3.0);
        let warp = Warp {
            size: Size { width: numbers.range(1, 200), height: 3 },
            origin: [numbers.range(0, 99) as f32 - 50.0, -1.5],
            rows,
            projection: numbers.one_in(2).then_some(projection),
            bilinear: numbers.one_in(2),
            fill: numbers.one_in(2).then_some([7, 90, 200]),
        };
        let gather = if numbers.one_in(4) { Gather::Sharpen { blur } } else { Gather::Warp(warp) };
        let out = gather.size(size);
        let y = numbers.range(0, out.height - 1);
        let run = |level| {
            let mut row = vec![0; 3 * out.width as usize];
            let whole = Whole::new::<3>(&input, size);
            let all = 0..out.width;
            gather::row::<3>(level, &gather, whole, y, all, &mut Places::default(), &mut row);
            row
        };
        let whole_row = run(Level::SCALAR);
        for level in Level::available() {
            assert_eq!(run(level), whole_row, "{} {gather:?}", level.name());
        }
        let left = numbers.range(0, out.width - 1);
        let columns = left..numbers.range(left + 1, out.width);
        let mut row = vec![0; whole_row.len()];
        let (whole, places) = (Whole::new::<3>(&input, size), &mut Places::default());
        gather::row::<3>(Level::best(), &gather, whole, y, columns.clone(), places, &mut row);
        let part = 3 * columns.start as usize..3 * columns.end as usize;
        assert_eq!(row[part.clone()], whole_row[part], "{columns:?} of {gather:?}");
    }
}

#[test]
fn places_that_are_no_numbers_are_outside() {
    let nowhere = Warp {
        size: Size { width: 9, height: 1 },
        origin: [0.0; 2],
        rows: [[f32::NAN; 3], [f32::INFINITY; 3]],
        projection: Some([f32::MAX; 2]),
        bilinear: false,
        fill: Some([1, 2, 3]),
    };
    for bilinear in [false, true] {
        for level in Level::available() {
            let gather = Gather::Warp(Warp { bilinear, ..nowhere });
            let whole = Whole::new::<3>(&[50; 12], Size { width: 2, height: 2 });
            let mut row = vec![0; 27];
            gather::row::<3>(level, &gather, whole, 0, 0..9, &mut Places::default(), &mut row);
            // torch's, too.
            let expected = if bilinear { [0; 3] } else { [1, 2, 3] };
            assert!(row.as_chunks::<3>().0.iter().all(|pixel| *pixel == expected));
        }
    }
}
