//! A region decoded alone equals the same region of a whole decode, bit for bit (PIX-1, T18).

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "test pictures are small, and a failed unwrap fails the test"
)]

mod common;

use common::{Encoding, Numbers, SUBSAMPLINGS, copy_plan, crop, decode, jpeg_of, render};
use forebay_core::{Region, Size};

fn check(encoded: &[u8], size: Size, whole: &[u8], region: Region, what: &str) {
    let (pixels, report) = render(encoded, &copy_plan(region)).unwrap();
    assert_eq!(report.intermediate_bytes, 0, "no whole image exists");
    assert_eq!((report.passes, report.warnings), (1, 0));
    assert!(pixels == crop(whole, size, region), "{what}: {region:?} of {size}");
}

fn random_region(numbers: &mut Numbers, size: Size) -> Region {
    let width = numbers.range(1, size.width);
    let height = numbers.range(1, size.height);
    Region {
        x: numbers.range(0, size.width - width),
        y: numbers.range(0, size.height - height),
        width,
        height,
    }
}

fn check_encoding(encoding: Encoding, sizes: &[(u32, u32)], regions: usize) {
    let mut numbers = Numbers(u64::from(encoding.progressive) + 17);
    for &(width, height) in sizes {
        let size = Size { width, height };
        let encoded = jpeg_of(size, 3, encoding);
        let (found, whole) = decode(&encoded).unwrap();
        assert_eq!(found, size);
        let what = format!("{encoding:?}");
        check(&encoded, size, &whole, Region::whole(size), &what);
        for _ in 0..regions {
            check(&encoded, size, &whole, random_region(&mut numbers, size), &what);
        }
    }
}

const SIZES: [(u32, u32); 7] =
    [(1, 1), (7, 9), (16, 16), (33, 65), (97, 50), (160, 131), (250, 203)];

#[test]
fn regions_are_exact_for_every_subsampling() {
    for subsampling in SUBSAMPLINGS {
        check_encoding(Encoding { subsampling, ..Encoding::default() }, &SIZES, 40);
    }
}

#[test]
fn regions_are_exact_in_progressive_files() {
    for subsampling in SUBSAMPLINGS {
        let encoding = Encoding { subsampling, progressive: true, ..Encoding::default() };
        check_encoding(encoding, &SIZES, 20);
    }
}

#[test]
fn regions_are_exact_with_restarts_and_arithmetic_coding() {
    for (arithmetic, progressive, restart_rows) in
        [(false, false, 1), (true, false, 0), (true, true, 0), (true, false, 2)]
    {
        let encoding = Encoding { progressive, arithmetic, restart_rows, ..Encoding::default() };
        check_encoding(encoding, &SIZES[3..], 20);
    }
}

#[test]
fn every_column_and_row_border_is_exact() {
    let size = Size { width: 70, height: 67 };
    let encoded = jpeg_of(size, 5, Encoding::default());
    let (_, whole) = decode(&encoded).unwrap();
    for start in 0..size.width {
        for width in [1, 2, 15, 16, 17, 33] {
            let width = width.min(size.width - start);
            let region = Region { x: start, y: 0, width, height: size.height };
            check(&encoded, size, &whole, region, "columns");
        }
    }
    for y in 0..size.height {
        for height in [1, 2, 15, 16, 17, 33] {
            let height = height.min(size.height - y);
            check(&encoded, size, &whole, Region { x: 20, y, width: 30, height }, "rows");
        }
    }
}

#[test]
fn damaged_regions_are_exact_too() {
    // Entropy damage gives warnings and odd pixels, the same ones in every region above it.
    let size = Size { width: 120, height: 90 };
    let mut numbers = Numbers(8);
    for progressive in [false, true] {
        let encoded = jpeg_of(size, 6, Encoding { progressive, ..Encoding::default() });
        for _ in 0..60 {
            let mut damaged = encoded.clone();
            let at = numbers.range(700, damaged.len() as u32 - 3) as usize;
            damaged[at] = numbers.next() as u8;
            let Ok((_, whole)) = decode(&damaged) else { continue };
            let region = random_region(&mut numbers, size);
            let (pixels, _) = render(&damaged, &copy_plan(region)).unwrap();
            assert!(pixels == crop(&whole, size, region), "{region:?} {progressive}");
        }
    }
}
