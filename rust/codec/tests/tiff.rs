//! TIFFs that the `tiff` crate does not read by itself: palettes, JPEG and CCITT group 4.

#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "test pictures are small, and a failed unwrap fails the test"
)]

mod common;
mod encoders;

use common::{Encoding, Numbers, decode, decode_with, jpeg, jpeg_of, picture};
use encoders::pages::{
    COLOURS, EXTRA, FILL_ORDER, JPEG_TABLES, SAMPLES, fax, strips, tagged, two_pixels,
};
use forebay_codec::{Error, Mode, Options, decode_as, probe};
use forebay_core::{ErrorKind, HasKind, Layout, Limits, Size};
use turbojpeg_sys as tj;

const SIZE: Size = Size { width: 37, height: 29 };
const JPEG: u32 = 7;
const FAX: u32 = 4;
const YCBCR: u32 = 6;

fn interleaved(file: &[u8]) -> Result<Vec<u8>, Error> {
    let options = Options { layout: Layout::ChannelsLast, ..Options::default() };
    decode_with(file, options, &Limits::default()).map(|(_, pixels)| pixels)
}

/// Three planes of 16 bits: colour `i` is `[i, 2 * i, 255 - i]` in the high bytes.
fn colours(depth: u32) -> Vec<u32> {
    let plane = |colour: fn(u32) -> u32| (0..1 << depth).map(move |at| colour(at) * 256 + 255);
    plane(|at| at).chain(plane(|at| 2 * at % 256)).chain(plane(|at| 255 - at)).collect()
}

#[test]
fn palettes_become_rgb_and_stay_numbers_unchanged() {
    let cases: [(u32, u32, &[u8], [u8; 2]); 5] = [
        (1, 1, &[0b0100_0000], [0, 1]),
        (2, 1, &[0b1101_0000], [3, 1]),
        (4, 1, &[0xf8], [15, 8]),
        (8, 1, &[200, 7], [200, 7]),
        (8, 2, &[200, 0, 7, 0], [200, 7]),
    ];
    for (depth, samples, data, indices) in cases {
        let map = colours(depth);
        let extra: &[(u16, &[u32])] = &[(COLOURS, &map), (EXTRA, &[0])];
        let more = if samples == 2 { extra } else { &extra[..1] };
        let file = two_pixels(depth, samples, 3, more, data);
        let expected = indices.map(|at| [at, (2 * u32::from(at) % 256) as u8, 255 - at]);
        assert_eq!(interleaved(&file).unwrap(), expected.as_flattened(), "{depth} {samples}");
        let meta = probe(&file, &Limits::default()).unwrap();
        let image = decode_as(&file, &meta, Mode::Unchanged, true, &Limits::default()).unwrap();
        assert_eq!((image.channels, image.wide, &image.pixels[..]), (1, false, &indices[..]));
    }
    for map in [vec![0; 3 * 255], vec![0; 3]] {
        let error = decode(&two_pixels(8, 1, 3, &[(COLOURS, &map)], &[1, 2])).unwrap_err();
        let expected = format!("damaged TIFF: palette of {} values, expected 768", map.len());
        assert_eq!(error.to_string(), expected);
    }
}

/// The numbers before the frame header, which every strip needs, and the rest.
fn split_tables(jpeg: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let (mut tables, mut rest) = (b"\xff\xd8".to_vec(), b"\xff\xd8".to_vec());
    let mut at = 2;
    while jpeg[at + 1] != 0xda {
        let next = at + 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
        let table = matches!(jpeg[at + 1], 0xc4 | 0xdb);
        if table { &mut tables } else { &mut rest }.extend(&jpeg[at..next]);
        at = next;
    }
    tables.extend(b"\xff\xd9");
    rest.extend(&jpeg[at..]);
    (tables, rest)
}

#[test]
fn jpeg_strips_have_libjpegs_pixels() {
    let rgb = picture(SIZE, 1);
    for subsampling in [tj::TJSAMP_TJSAMP_444, tj::TJSAMP_TJSAMP_420] {
        let encoding = Encoding { subsampling, ..Encoding::default() };
        let parts: Vec<&[u8]> = rgb.chunks(16 * 3 * 37).collect();
        let height = |part: &[u8]| Size { height: (part.len() / 111) as u32, ..SIZE };
        let jpegs: Vec<_> = parts.iter().map(|part| jpeg(height(part), part, encoding)).collect();
        let expected: Vec<u8> = jpegs.iter().flat_map(|jpeg| interleaved(jpeg).unwrap()).collect();
        let samples: (u16, &[u32]) = (SAMPLES, &[3]);
        let whole = strips(SIZE, (8, YCBCR), JPEG, 16, &jpegs, &[samples]);
        assert!(interleaved(&whole).unwrap() == expected);

        let (tables, _) = split_tables(&jpegs[0]);
        let tables: Vec<u32> = tables.iter().map(|&byte| byte.into()).collect();
        let bodies: Vec<_> = jpegs.iter().map(|jpeg| split_tables(jpeg).1).collect();
        let more = [samples, (JPEG_TABLES, &tables[..])];
        let shared = strips(SIZE, (8, YCBCR), JPEG, 16, &bodies, &more);
        assert!(interleaved(&shared).unwrap() == expected);
        let error = decode(&strips(SIZE, (8, YCBCR), JPEG, 16, &bodies, &[samples])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "without tables: {error}");
    }
}

/// The stream's JFIF marker says YCbCr, the TIFF knows better.
#[test]
fn samples_of_a_jpeg_are_what_the_tiff_says() {
    let grey: Vec<u8> = picture(SIZE, 1).chunks(3).flat_map(|pixel| [pixel[0]; 3]).collect();
    let file = jpeg(SIZE, &grey, Encoding { quality: 100, ..Encoding::default() });
    let page = |photometric| {
        strips(SIZE, (8, photometric), JPEG, 29, std::slice::from_ref(&file), &[(SAMPLES, &[3])])
    };
    let ycbcr = interleaved(&page(YCBCR)).unwrap();
    let raw = interleaved(&page(2)).unwrap();
    for (shown, stored) in ycbcr.chunks(3).zip(raw.chunks(3)) {
        assert!(shown[0].abs_diff(stored[0]) <= 3, "luma {shown:?} {stored:?}");
        assert!(stored[1..].iter().all(|chroma| chroma.abs_diff(128) <= 2), "{stored:?}");
    }
}

#[test]
fn jpegs_that_do_not_fit_their_tiff_are_refused() {
    let file = jpeg_of(SIZE, 1, Encoding::default());
    let reason = |size, samples: u32, data: &[u8]| {
        let page = strips(
            size,
            (8, if samples == 3 { YCBCR } else { 1 }),
            JPEG,
            size.height,
            &[data.to_vec()],
            &[(SAMPLES, &[samples])],
        );
        let error = decode(&page).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
        error.to_string()
    };
    let high = Size { height: 30, ..SIZE };
    assert_eq!(reason(high, 3, &file), "damaged TIFF: strip of 37x30 pixels holds a JPEG of 37x29");
    let wide = Size { width: 38, ..SIZE };
    assert_eq!(reason(wide, 3, &file), "damaged TIFF: strip of 38x29 pixels holds a JPEG of 37x29");
    assert_eq!(reason(SIZE, 1, &file), "damaged TIFF: JPEG of 3 components, expected 1");
    assert_eq!(
        reason(SIZE, 3, &file[1..]),
        "damaged TIFF: a strip that should be JPEG has no start of image"
    );
    assert_eq!(reason(SIZE, 3, &file[..file.len() / 2]), "truncated: no end of image");
}

/// Runs of every length that noise, copies of the row above and long runs make.
fn paper(size: Size, seed: u64) -> Vec<u8> {
    let mut numbers = Numbers(seed);
    let mut pixels: Vec<u8> = Vec::new();
    for y in 0..size.height as usize {
        let from = pixels.len().saturating_sub(size.width as usize);
        let above = pixels[from..].to_vec();
        let kind = numbers.range(0, 3);
        let mut colour = 0;
        for x in 0..size.width as usize {
            colour ^= u8::from(numbers.one_in([2, 9, 80, 3000][kind as usize]));
            let moved = above.get((x + y) % 3 + x).copied().unwrap_or(0);
            pixels.push(if kind == 0 && y > 0 { moved } else { colour });
        }
    }
    pixels
}

#[test]
fn fax_pixels_are_those_that_were_encoded() {
    for (seed, width) in [1, 2, 7, 8, 64, 300, 3000, 70_000].into_iter().enumerate() {
        let size = Size { width, height: 19 };
        let pixels = paper(size, seed as u64);
        let parts: Vec<_> =
            pixels.chunks(5 * width as usize).map(|part| fax(width, part)).collect();
        for (photometric, black) in [(0, 0), (1, 255)] {
            let expected: Vec<u8> =
                pixels.iter().map(|&pixel| if pixel == 1 { black } else { 255 - black }).collect();
            let file = strips(size, (1, photometric), FAX, 5, &parts, &[]);
            let found = interleaved(&file).unwrap();
            assert!(found.iter().step_by(3).eq(&expected), "{width} {photometric}");
            let backwards: Vec<Vec<u8>> = parts
                .iter()
                .map(|part| part.iter().map(|byte| byte.reverse_bits()).collect())
                .collect();
            let reversed =
                strips(size, (1, photometric), FAX, 5, &backwards, &[(FILL_ORDER, &[2])]);
            assert!(interleaved(&reversed).unwrap() == found, "{width} reversed");
        }
    }
}

#[test]
fn fax_that_ends_early_or_breaks_the_rules_is_refused() {
    let size = Size { width: 8, height: 4 };
    let reason = |data: &[u8]| {
        decode(&strips(size, (1, 0), FAX, 4, &[data.to_vec()], &[])).unwrap_err().to_string()
    };
    assert_eq!(reason(&fax(8, &[0; 16])), "truncated: CCITT data for 2 rows, expected 4");
    // Four rows that repeat the one above are a bit each.
    assert_eq!(interleaved(&strips(size, (1, 0), FAX, 4, &[vec![0xf0]], &[])).unwrap(), [255; 96]);
    assert_eq!(reason(&[0xe0]), "truncated: CCITT data for 3 rows, expected 4");
    assert_eq!(reason(&[]), "truncated: 0 bytes of data for 8x4 pixels");
    // Horizontal, 3 white, 64 + 0 black: past the end of the row.
    assert_eq!(
        reason(&[0b0011_0000, 0b0000_1111, 0b0000_1101, 0b1100_0000]),
        "damaged TIFF: no CCITT code in row 0"
    );
}

/// Changes that stand at one place by the thousand, and a row that walks over them again and again:
/// a search for each would take minutes.
#[test]
fn fax_of_empty_runs_takes_no_longer_than_its_data() {
    let (empty, back) = ("001001101010000110111", "10000010");
    let bits =
        ["001001110000110111", &empty.repeat(200_000), "0010001110101", &back.repeat(200_000)];
    let byte = |bits: &[u8]| {
        bits.iter().enumerate().fold(0, |byte, (at, bit)| byte | (bit & 1) << (7 - at))
    };
    let data = bits.concat().as_bytes().chunks(8).map(byte).collect();
    let file = strips(Size { width: 64, height: 2 }, (1, 0), FAX, 2, &[data], &[]);
    assert_eq!(decode(&file).unwrap_err().to_string(), "damaged TIFF: no CCITT code in row 1");
}

#[test]
fn less_data_than_the_pixels_take_is_refused_before_they_have_memory() {
    let size = Size { width: 12_000, height: 12_000 };
    let file = strips(size, (1, 0), FAX, 12_000, &[vec![0xff; 1000]], &[]);
    let error = decode_with(&file, Options::default(), &Limits::default()).unwrap_err();
    assert_eq!(error.to_string(), "truncated: 1000 bytes of data for 12000x12000 pixels");
}

/// A hundred strips that are the same kilobytes would be read a hundred times.
#[test]
fn strips_that_overlap_too_often_are_refused() {
    let offsets = [8; 100];
    let lengths = [5000; 100];
    let tags: [(u16, &[u32]); 9] = [
        (256, &[1]),
        (257, &[100]),
        (258, &[8]),
        (259, &[JPEG]),
        (262, &[1]),
        (273, &offsets),
        (277, &[1]),
        (278, &[1]),
        (279, &lengths),
    ];
    let error = probe(&tagged(&tags, &[0; 5000]), &Limits::default()).unwrap_err();
    assert!(error.to_string().starts_with("damaged TIFF: strips of 500000 bytes"), "{error}");
}
