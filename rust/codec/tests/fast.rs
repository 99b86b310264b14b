//! JPEGs decoded at a fraction of their size: near the pixels of all of it, and only where a resize
//! allows it.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "test pictures are small, and a failed unwrap fails the test"
)]

mod common;

use common::{Encoding, Numbers, OF_COLOUR, SUBSAMPLINGS, copy_plan, jpeg, png, raw_write, render};
use common::{render_by, with_exif};
use forebay_codec::CpuBackend;
use forebay_core::coeffs::Interpolation;
use forebay_core::ports::{Fault, Pixels, Stop};
use forebay_core::recipe::ResizedCrop;
use forebay_core::{Bytes, ImagePlan, Layout, Limits, Orientation, Region, Size};

const SIZE: Size = Size { width: 1203, height: 907 };
const OUT: Size = Size { width: 48, height: 40 };

/// Slopes and waves, some edges, and a sensor's noise.
fn photo(size: Size, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let mut pixels = Vec::with_capacity(3 * size.pixels() as usize);
    for y in 0..size.height {
        for x in 0..size.width {
            let (u, v) = (x as f32 / size.width as f32, y as f32 / size.height as f32);
            let edge = if (7.0 * u).sin() + (9.0 * v).cos() > 0.4 { 60.0 } else { 0.0 };
            let fine = 20.0 * (0.7 * x as f32).sin() * (0.5 * y as f32).cos();
            for channel in 0..3 {
                let wave = 50.0 * (6.0 * u + 4.0 * v + channel as f32).sin();
                let noise = numbers.range(0, 16) as f32 - 8.0;
                pixels.push((110.0 + wave + edge + fine + noise).clamp(0.0, 255.0) as u8);
            }
        }
    }
    pixels
}

fn fast(encoded: &[u8], plan: &ImagePlan) -> Result<Vec<u8>, Fault> {
    let pixels = Pixels::Encoded(Bytes::new(encoded.to_vec()));
    let backend = CpuBackend::fast(Limits::default());
    render_by(&backend, encoded, pixels, plan, &Stop::default()).map(|(bytes, _)| bytes)
}

fn plan(bounds: Option<[i64; 4]>, size: Size, orientation: Orientation) -> ImagePlan {
    let crop = ResizedCrop {
        bounds,
        size,
        interpolation: Interpolation::Bilinear,
        antialias: true,
        flip: true,
    };
    crop.plan(SIZE, orientation, raw_write(Layout::Contiguous)).unwrap()
}

/// Fails where values differ too much, or not at all.
fn check(encoded: &[u8], plan: &ImagePlan, what: &str) {
    let (full, _) = render(encoded, plan).unwrap();
    let fast = fast(encoded, plan).unwrap();
    let differences: Vec<u8> = full.iter().zip(&fast).map(|(&a, &b)| a.abs_diff(b)).collect();
    let count = differences.len() as f64;
    let mean = differences.iter().map(|&by| f64::from(by)).sum::<f64>() / count;
    let near = differences.iter().filter(|&&by| by <= 16).count() as f64 / count;
    assert!(mean < 1.5 && near >= 0.999, "{what}: mean {mean}, {near} within 16");
    assert!(mean > 0.0, "{what}: decoded whole");
}

#[test]
fn differences_are_small_for_every_kind_of_jpeg() {
    let pixels = photo(SIZE, 1);
    let plan = plan(None, OUT, Orientation::default());
    for progressive in [false, true] {
        for subsampling in SUBSAMPLINGS {
            let encoding =
                Encoding { subsampling, progressive, quality: 92, ..Encoding::default() };
            check(&jpeg(SIZE, &pixels, encoding), &plan, &format!("{encoding:?}"));
        }
    }
}

#[test]
fn differences_are_small_for_every_crop_and_orientation() {
    let mut numbers = Numbers(4);
    let pixels = photo(SIZE, 2);
    let encoding = Encoding { subsampling: OF_COLOUR[2], quality: 92, ..Encoding::default() };
    let encoded = jpeg(SIZE, &pixels, encoding);
    for exif in 1..=8 {
        let orientation = Orientation::from_exif(exif).unwrap();
        let upright = orientation.upright(SIZE);
        let encoded = with_exif(&encoded, exif as u8);
        for _ in 0..6 {
            let side = |length: u32, numbers: &mut Numbers| {
                let taken = numbers.range(200, length);
                let start = numbers.range(0, length - taken);
                (i64::from(start), i64::from(start + taken))
            };
            let (left, right) = side(upright.width, &mut numbers);
            let (top, bottom) = side(upright.height, &mut numbers);
            let bounds = [left, top, right, bottom];
            let plan = plan(Some(bounds), OUT, orientation);
            check(&encoded, &plan, &format!("{bounds:?}, orientation {exif}"));
        }
    }
}

#[test]
fn what_is_not_much_smaller_is_exact() {
    let encoded = jpeg(SIZE, &photo(SIZE, 3), Encoding::default());
    let upright = Orientation::default();
    let exact = |plan: &ImagePlan, what: &str| {
        assert!(fast(&encoded, plan).unwrap() == render(&encoded, plan).unwrap().0, "{what}");
    };
    let third = |length: u32| length / 3 + 1;
    exact(&plan(None, Size { width: third(SIZE.width), height: 20 }, upright), "wide");
    exact(&plan(None, Size { width: 20, height: third(SIZE.height) }, upright), "high");
    exact(&copy_plan(Region { x: 5, y: 9, width: 301, height: 222 }), "a copy");
    let spread = ResizedCrop {
        bounds: None,
        size: OUT,
        interpolation: Interpolation::Bilinear,
        antialias: false,
        flip: false,
    };
    let write = raw_write(Layout::Contiguous);
    exact(&spread.plan(SIZE, upright, write).unwrap(), "without antialiasing");
    let nearest = ResizedCrop { interpolation: Interpolation::Nearest, ..spread };
    exact(&nearest.plan(SIZE, upright, write).unwrap(), "nearest");
}

#[test]
fn other_formats_are_exact() {
    let pixels = photo(SIZE, 5);
    let encoded = png(SIZE, ::png::ColorType::Rgb, ::png::BitDepth::Eight, &pixels);
    let plan = plan(None, OUT, Orientation::default());
    assert!(fast(&encoded, &plan).unwrap() == render(&encoded, &plan).unwrap().0);
}

#[test]
fn one_colour_stays_as_it_is() {
    for level in [0, 77, 255] {
        let pixels = vec![level; 3 * SIZE.pixels() as usize];
        let encoded = jpeg(SIZE, &pixels, Encoding { quality: 100, ..Encoding::default() });
        let plan = plan(Some([3, 5, 1000, 900]), OUT, Orientation::default());
        let fast = fast(&encoded, &plan).unwrap();
        assert!(fast.iter().all(|&value| value.abs_diff(level) <= 1), "{level}: {:?}", &fast[..9]);
    }
}

#[test]
fn verdicts_are_the_same() {
    let encoded = jpeg(SIZE, &photo(SIZE, 6), Encoding::default());
    let plan = plan(None, OUT, Orientation::default());
    let cut = &encoded[..encoded.len() / 2];
    assert_eq!(fast(cut, &plan).unwrap_err().reason, render(cut, &plan).unwrap_err().reason);
    let mut damaged = encoded.clone();
    let middle = encoded.len() / 2;
    damaged[middle..middle + 40].fill(0x55);
    let pixels = Pixels::Encoded(Bytes::new(damaged.clone()));
    let backend = CpuBackend::fast(Limits::default());
    let (_, found) = render_by(&backend, &damaged, pixels, &plan, &Stop::default()).unwrap();
    assert_eq!(found.warnings, render(&damaged, &plan).unwrap().1.warnings);
}
