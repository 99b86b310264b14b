//! Damaged and hostile bytes give errors: no panic, no hang, no memory (ERR-1, ERR-2).

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "test pictures are small, and a failed unwrap fails the test"
)]

mod common;
mod encoders;

use common::{Encoding, Numbers, copy_plan, decode, decode_with, jpeg_of, picture, png, render};
use encoders::pages::{COLOURS, fax, strips};
use encoders::{bmp, gif, tiff, webp};
use forebay_codec::{Error, Options, probe};
use forebay_core::{ErrorKind, HasKind, Limits, Region, Size};

const SIZE: Size = Size { width: 37, height: 29 };

fn samples() -> Vec<Vec<u8>> {
    let rgb = picture(SIZE, 1);
    let black: Vec<u8> = rgb.iter().step_by(3).map(|&red| u8::from(red > 99)).collect();
    let colours: Vec<u32> = (0..768).collect();
    let indices = rgb[..37 * 29].to_vec();
    let subsampling = turbojpeg_sys::TJSAMP_TJSAMP_GRAY;
    let grey = jpeg_of(SIZE, 1, Encoding { subsampling, ..Encoding::default() });
    vec![
        jpeg_of(SIZE, 1, Encoding::default()),
        jpeg_of(SIZE, 1, Encoding { progressive: true, ..Encoding::default() }),
        jpeg_of(SIZE, 1, Encoding { restart_rows: 1, ..Encoding::default() }),
        png(SIZE, png::ColorType::Rgb, png::BitDepth::Eight, &rgb),
        webp(SIZE, &rgb),
        bmp(SIZE, &rgb),
        tiff(SIZE, &rgb),
        gif(SIZE, &rgb),
        strips(SIZE, (8, 3), 1, 29, &[indices], &[(COLOURS, &colours)]),
        strips(SIZE, (8, 1), 7, 29, &[grey], &[]),
        strips(SIZE, (1, 0), 4, 29, &[fax(37, &black)], &[]),
    ]
}

#[test]
fn files_cut_at_any_length_are_refused() {
    for file in samples() {
        assert!(decode(&file).is_ok());
        // Behind the pixels of a GIF's first image stand the end of its data and a trailer.
        let needed = file.len() - if file.starts_with(b"GIF") { 5 } else { 0 };
        for len in 0..needed {
            let error = decode(&file[..len]).expect_err("a cut file");
            assert_eq!(error.kind(), ErrorKind::Data, "{len} of {}: {error}", file.len());
        }
    }
}

#[test]
fn truncated_is_the_verdict_whatever_the_region() {
    let file = jpeg_of(SIZE, 1, Encoding::default());
    let half = &file[..file.len() / 2 + 300];
    let fault = render(half, &copy_plan(Region { x: 0, y: 0, width: 8, height: 1 })).unwrap_err();
    assert_eq!(fault.reason, "truncated: no end of image");
}

#[test]
fn accepted_truncated_files_give_what_is_there() {
    let limits = Limits { accept_truncated: true, ..Limits::default() };
    let size = Size { width: 64, height: 200 };
    let file = jpeg_of(size, 2, Encoding::default());
    let (_, whole) = decode(&file).unwrap();
    let options = Options {
        layout: forebay_core::Layout::ChannelsLast,
        apply_orientation: false,
        ..Options::default()
    };
    let (_, half) = decode_with(&file[..file.len() / 2], options, &limits).unwrap();
    assert_eq!(half[..64 * 3 * 16], whole[..64 * 3 * 16], "the upper rows are there");
    let last = &half[64 * 3 * 199..];
    assert!(last.windows(4).all(|w| w[0] == w[3]), "the last row is flat: {last:?}");
    // Without any scan there is nothing to show.
    assert!(matches!(probe(&file[..200], &limits), Err(Error::Truncated { .. })));
    let file = png(size, png::ColorType::Rgb, png::BitDepth::Eight, &picture(size, 2));
    let (_, half) = decode_with(&file[..file.len() / 2], options, &limits).unwrap();
    assert_eq!(half[..64 * 3], picture(size, 2)[..64 * 3]);
    assert_eq!(half[64 * 3 * 199..], [128; 64 * 3]);
}

#[test]
fn random_damage_never_panics_and_a_good_file_still_decodes() {
    let files = samples();
    let good: Vec<_> = files.iter().map(|file| decode(file).unwrap()).collect();
    let mut numbers = Numbers(4);
    for round in 0..2000 {
        let which = round % files.len();
        let mut file = files[which].clone();
        for _ in 0..numbers.range(1, 6) {
            let at = numbers.range(0, file.len() as u32 - 1) as usize;
            file[at] = numbers.next() as u8;
        }
        let _ = decode(&file);
        if round % 50 == 0 {
            assert!(
                decode(&files[which]).unwrap() == good[which],
                "a file's pixels depend on it alone"
            );
        }
    }
    for _ in 0..2000 {
        let len = numbers.range(0, 300) as usize;
        let mut bytes = numbers.bytes(len);
        if let Some(start) = bytes.get_mut(..4) {
            start.copy_from_slice(b"\xff\xd8\xff\xdb");
        }
        assert!(decode(&bytes).is_err());
    }
}

/// A CRC of its own makes the chunk whole, so that only zlib's checksum tells.
#[test]
fn pngs_whose_pixels_have_another_checksum_are_refused() {
    let mut file = png(SIZE, png::ColorType::Rgb, png::BitDepth::Eight, &picture(SIZE, 1));
    let idat = file.windows(4).position(|name| name == b"IDAT").unwrap();
    let length = u32::from_be_bytes(file[idat - 4..idat].try_into().unwrap()) as usize;
    let end = idat + 4 + length;
    file[end - 1] ^= 1;
    let mut crc = !0_u32;
    for &byte in &file[idat..end] {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    file[end..end + 4].copy_from_slice(&(!crc).to_be_bytes());
    let error = decode(&file).unwrap_err();
    assert!(error.to_string().starts_with("damaged PNG: "), "{error}");
}

#[test]
fn tables_of_an_earlier_file_are_not_used() {
    let file = jpeg_of(SIZE, 1, Encoding::default());
    // The first DQT segment stands behind the 18 bytes of JFIF.
    let start = file.windows(2).position(|pair| pair == [0xff, 0xdb]).unwrap();
    let length = usize::from(file[start + 2]) << 8 | usize::from(file[start + 3]);
    let without = [&file[..start], &file[start + 2 + length..]].concat();
    assert!(decode(&file).is_ok());
    let error = decode(&without).unwrap_err();
    assert!(error.to_string().contains("Quantization table"), "{error}");
}

/// A header that declares 65500 x 65500 pixels, in 2 KB (T05).
fn huge_header() -> Vec<u8> {
    let mut file = jpeg_of(SIZE, 1, Encoding::default());
    let frame = file.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    file[frame + 5..frame + 9].copy_from_slice(&[0xff, 0xdc, 0xff, 0xdc]);
    file
}

#[test]
fn huge_headers_are_refused_before_memory_is_taken() {
    let before = resident_bytes();
    let error = decode(&huge_header()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "65500x65500 pixels exceed the limit of 178956970; raise max_pixels"
    );
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(resident_bytes() < before + (64 << 20));
}

#[test]
fn files_of_very_many_scans_are_refused() {
    let size = Size { width: 16, height: 16 };
    let file = jpeg_of(size, 1, Encoding { progressive: true, ..Encoding::default() });
    let scan = file.windows(2).rposition(|pair| pair == [0xff, 0xda]).unwrap();
    let end = file.len() - 2;
    let mut bomb = file[..end].to_vec();
    for _ in 0..1000 {
        bomb.extend(&file[scan..end]);
    }
    bomb.extend([0xff, 0xd9]);
    let error = decode(&bomb).unwrap_err();
    assert_eq!(error.to_string(), "more than 1000 scans of 16x16 pixels; raise max_pixels");
    let max_pixels = 2 * Limits::DEFAULT_MAX_PIXELS;
    let raised = probe(&bomb, &Limits { max_pixels, ..Limits::default() });
    assert!(raised.is_ok_and(|meta| meta.progressive));
}

/// Files whose data cannot hold the pixels that they declare are refused before these have memory.
#[test]
fn data_that_is_too_short_is_refused_before_memory_is_taken() {
    let before = resident_bytes();
    let mut jpeg = jpeg_of(SIZE, 1, Encoding::default());
    let frame = jpeg.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0x27, 0x10, 0x27, 0x10]);
    let mut other = png(SIZE, png::ColorType::Rgb, png::BitDepth::Eight, &picture(SIZE, 1));
    other[16..24].copy_from_slice(&[0, 0, 0x27, 0x10, 0, 0, 0x27, 0x10]);
    for file in [&jpeg, &other] {
        let error = decode(file).unwrap_err().to_string();
        assert!(error.starts_with("truncated: "), "{error}");
        assert!(error.ends_with(" bytes of data for 10000x10000 pixels"), "{error}");
        let accepted = Limits { accept_truncated: true, ..Limits::default() };
        assert!(probe(file, &accepted).is_ok());
    }
    assert!(resident_bytes() < before + (64 << 20));
}

#[test]
fn malformed_files_leave_no_memory_behind() {
    soak(1000);
}

#[test]
#[ignore = "make soak"]
fn malformed_files_leave_no_memory_behind_in_ten_thousand_decodes() {
    soak(10_000);
}

/// T03. Resident memory after a warm-up grows by less than 20 MB.
fn soak(rounds: usize) {
    let size = Size { width: 400, height: 300 };
    let good = jpeg_of(size, 1, Encoding { progressive: true, ..Encoding::default() });
    // Damage in the middle of the header that libjpeg finds after it has taken memory.
    let scan = good.windows(2).rposition(|pair| pair == [0xff, 0xda]).unwrap();
    let mut bad = good.clone();
    bad[scan + 5] = 9;
    assert!(decode(&bad).is_err());
    for _ in 0..50 {
        let _ = decode(&bad);
    }
    let before = resident_bytes();
    for _ in 0..rounds {
        assert!(decode(&bad).is_err());
    }
    assert!(resident_bytes() < before + 20_000_000);
}

/// 0 where the system does not tell.
fn resident_bytes() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/self/statm") else { return 0 };
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    pages.map_or(0, |pages| pages * 4096)
}
