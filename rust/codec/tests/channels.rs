//! Images in grey, with alpha, or as the file stores them, where Pillow writes no such file.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

mod common;
mod encoders;

use encoders::pages::{
    BITS, COLOURS, COMPRESSION, EXTRA, HEIGHT, PHOTOMETRIC, PLANAR, STRIP_BYTES, STRIP_OFFSETS,
    WIDTH, tagged, two_pixels,
};
use forebay_codec::{Error, Image, Mode, decode_as, probe};
use forebay_core::Limits;

fn decode(file: &[u8], mode: Mode) -> Result<Image, Error> {
    let limits = Limits::default();
    decode_as(file, &probe(file, &limits)?, mode, true, &limits)
}

/// The pixels, sample by sample of each, from an image of two.
fn pixels(image: &Image) -> [Vec<u16>; 2] {
    let samples: Vec<u16> = if image.wide {
        image.pixels.as_chunks().0.iter().map(|&two| u16::from_ne_bytes(two)).collect()
    } else {
        image.pixels.iter().copied().map(u16::from).collect()
    };
    [0, 1].map(|at| samples.iter().skip(at).step_by(2).copied().collect())
}

/// A page of two pixels with a strip for each of `planes`.
fn planar(bits: u32, photometric: u32, extra: &[u32], planes: &[&[u8]]) -> Vec<u8> {
    let lengths: Vec<u32> =
        planes.iter().map(|plane| u32::try_from(plane.len()).unwrap()).collect();
    let starts: Vec<u32> =
        lengths.iter().scan(8, |at, length| Some(std::mem::replace(at, *at + length))).collect();
    let samples = u32::try_from(planes.len()).unwrap();
    let more: [(u16, &[u32]); 4] =
        [(PLANAR, &[2]), (STRIP_OFFSETS, &starts), (STRIP_BYTES, &lengths), (EXTRA, extra)];
    let more = if extra.is_empty() { &more[..3] } else { &more };
    two_pixels(bits, samples, photometric, more, &planes.concat())
}

/// A file, its two pixels as stored, and with alpha.
type Case<'a> = (Vec<u8>, [&'a [u16]; 2], [[u16; 4]; 2]);

#[test]
fn samples_of_a_tiff_are_kept() {
    let alpha: &[(u16, &[u32])] = &[(EXTRA, &[2])];
    let other: &[(u16, &[u32])] = &[(EXTRA, &[0])];
    let wide = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    let cases: [Case<'_>; 9] = [
        (
            two_pixels(8, 2, 1, alpha, &[9, 0, 200, 1]),
            [&[9, 0], &[200, 1]],
            [[9, 9, 9, 0], [200, 200, 200, 1]],
        ),
        (
            two_pixels(8, 2, 1, other, &[9, 0, 200, 1]),
            [&[9], &[200]],
            [[9, 9, 9, 255], [200, 200, 200, 255]],
        ),
        (
            two_pixels(8, 4, 2, other, &[1, 2, 3, 0, 4, 5, 6, 0]),
            [&[1, 2, 3], &[4, 5, 6]],
            [[1, 2, 3, 255], [4, 5, 6, 255]],
        ),
        (
            two_pixels(16, 1, 0, &[], &[255, 1, 0, 200]),
            [&[65_535 - 511], &[65_535 - 51_200]],
            [[254, 254, 254, 255], [55, 55, 55, 255]],
        ),
        (
            two_pixels(16, 4, 2, alpha, &wide),
            [&[513, 1027, 1541, 2055], &[2569, 3083, 3597, 4111]],
            [[2, 4, 6, 8], [10, 12, 14, 16]],
        ),
        (two_pixels(4, 1, 0, &[], &[0xf8]), [&[0], &[119]], [[0, 0, 0, 255], [119, 119, 119, 255]]),
        (
            planar(8, 2, &[2], &[&[1, 4], &[2, 5], &[3, 6], &[7, 8]]),
            [&[1, 2, 3, 7], &[4, 5, 6, 8]],
            [[1, 2, 3, 7], [4, 5, 6, 8]],
        ),
        (
            planar(8, 2, &[], &[&[1, 4], &[2, 5], &[3, 6]]),
            [&[1, 2, 3], &[4, 5, 6]],
            [[1, 2, 3, 255], [4, 5, 6, 255]],
        ),
        (
            planar(16, 2, &[], &[&[1, 2, 3, 4], &[5, 6, 7, 8], &[9, 10, 11, 12]]),
            [&[513, 1541, 2569], &[1027, 2055, 3083]],
            [[2, 6, 10, 255], [4, 8, 12, 255]],
        ),
    ];
    for (number, (file, unchanged, with_alpha)) in cases.iter().enumerate() {
        let image = decode(file, Mode::Unchanged).unwrap();
        assert_eq!(pixels(&image), unchanged.map(<[u16]>::to_vec), "{number}");
        assert_eq!(usize::from(image.channels), unchanged[0].len(), "{number}");
        let image = decode(file, Mode::RgbAlpha).unwrap();
        assert_eq!((image.channels, image.wide), (4, false));
        assert_eq!(pixels(&image), with_alpha.map(|pixel| pixel.to_vec()), "{number}");
    }
}

#[test]
fn colours_that_are_multiplied_by_alpha_are_not_so_anymore() {
    let associated: &[(u16, &[u32])] = &[(EXTRA, &[1])];
    let interleaved = two_pixels(8, 4, 2, associated, &[9, 7, 0, 10, 1, 2, 3, 0]);
    let in_planes = planar(8, 2, &[1], &[&[9, 1], &[7, 2], &[0, 3], &[10, 0]]);
    for file in [interleaved, in_planes] {
        for mode in [Mode::RgbAlpha, Mode::Unchanged] {
            let image = decode(&file, mode).unwrap();
            assert_eq!(pixels(&image), [vec![229, 178, 0, 10], vec![0, 0, 0, 0]]);
        }
        let image = decode(&file, Mode::Rgb).unwrap();
        assert_eq!(pixels(&image), [vec![229, 178, 0], vec![0, 0, 0]]);
    }
    let grey = two_pixels(8, 2, 1, associated, &[9, 10, 1, 0]);
    assert_eq!(pixels(&decode(&grey, Mode::Unchanged).unwrap()), [vec![229, 10], vec![0, 0]]);
    assert_eq!(pixels(&decode(&grey, Mode::Gray).unwrap()), [vec![229], vec![0]]);
    let wide = two_pixels(16, 4, 2, associated, &[0, 9, 0, 7, 0, 0, 0, 10, 0, 1, 0, 2, 0, 3, 0, 0]);
    assert_eq!(
        pixels(&decode(&wide, Mode::RgbAlpha).unwrap()),
        [vec![229, 178, 0, 10], vec![0, 0, 0, 0]]
    );
    let error = decode(&wide, Mode::Unchanged).unwrap_err().to_string();
    assert_eq!(
        error,
        "TIFF of 16 bits that are multiplied by alpha in mode UNCHANGED is not decoded"
    );
}

#[test]
fn a_palettes_alpha_stays_beside_its_indices() {
    let map: Vec<u32> = (0..3 * 256).map(|at| 256 * (at % 256)).collect();
    // Numbers are not multiplied, whatever the file says of alpha.
    for kind in [1, 2] {
        let file = two_pixels(8, 2, 3, &[(COLOURS, &map), (EXTRA, &[kind])], &[7, 90, 200, 255]);
        assert_eq!(pixels(&decode(&file, Mode::Unchanged).unwrap()), [vec![7, 90], vec![200, 255]]);
        assert_eq!(
            pixels(&decode(&file, Mode::RgbAlpha).unwrap()),
            [vec![7, 7, 7, 90], vec![200, 200, 200, 255]]
        );
    }
}

#[test]
fn a_fourth_sample_that_no_tag_names_is_alpha() {
    let file = two_pixels(8, 4, 2, &[], &[1, 2, 3, 77, 4, 5, 6, 7]);
    for mode in [Mode::Unchanged, Mode::RgbAlpha] {
        let image = decode(&file, mode).unwrap();
        assert_eq!(pixels(&image), [vec![1, 2, 3, 77], vec![4, 5, 6, 7]]);
    }
}

/// The crate that reads TIFF says on stderr what it does not read; it is kept from it.
#[test]
fn endless_text_is_refused_before_it_is_read() {
    let mut file = two_pixels(8, 1, 1, &[], &[9, 7]);
    let place = file.windows(4).position(|entry| entry == [6, 1, 3, 0]).unwrap();
    file[place + 2..place + 8].copy_from_slice(&[2, 0, 255, 255, 255, 127]);
    let error = decode(&file, Mode::Rgb).unwrap_err().to_string();
    assert_eq!(error, "truncated: a strip, a tile or a value is longer than the file");
}

/// Neither a compressed file nor rows as they are can be so much longer than what is there.
#[test]
fn files_far_too_short_for_their_pixels_are_refused_at_once() {
    for method in [1, 5, 8, 32_773] {
        let tags: [(u16, &[u32]); 7] = [
            (WIDTH, &[2]),
            (HEIGHT, &[1 << 26]),
            (BITS, &[8]),
            (COMPRESSION, &[method]),
            (PHOTOMETRIC, &[1]),
            (STRIP_OFFSETS, &[8]),
            (STRIP_BYTES, &[2]),
        ];
        let file = tagged(&tags, &[9, 7]);
        let error = decode(&file, Mode::Rgb).unwrap_err().to_string();
        assert_eq!(error, format!("truncated: {} bytes for 2x67108864 pixels", file.len()));
    }
    let mut bmp = b"BM".to_vec();
    bmp.extend([[0, 0, 0, 0], [0, 0, 0, 0], [54, 0, 0, 0], [40, 0, 0, 0]].as_flattened());
    bmp.extend([[0, 64, 0, 0], [0, 32, 0, 0], [1, 0, 24, 0]].as_flattened());
    bmp.extend([0; 100]);
    let error = decode(&bmp, Mode::Rgb).unwrap_err().to_string();
    assert_eq!(error, "truncated: 130 bytes for 16384x8192 pixels");
}

#[test]
fn strips_that_end_behind_the_file_are_truncated() {
    let file = two_pixels(8, 1, 1, &[(STRIP_OFFSETS, &[8]), (STRIP_BYTES, &[5000])], &[9, 7]);
    let error = decode(&file, Mode::Rgb).unwrap_err().to_string();
    assert!(error.starts_with("truncated: "), "{error}");
}

/// Fields of the first BMP header are of 16 bits, its palette's colours of three bytes.
#[test]
fn a_bmp_of_the_first_kind_has_indices() {
    let mut file = b"BM".to_vec();
    file.extend([[0, 0, 0, 0], [0, 0, 0, 0], [32, 0, 0, 0], [12, 0, 0, 0]].as_flattened());
    file.extend([2, 0, 1, 0, 1, 0, 1, 0]);
    file.extend([1, 2, 3, 4, 5, 6]);
    file.extend([0b0100_0000, 0, 0, 0]);
    assert_eq!(pixels(&decode(&file, Mode::Unchanged).unwrap()), [vec![0], vec![1]]);
    assert_eq!(pixels(&decode(&file, Mode::Rgb).unwrap()), [vec![3, 2, 1], vec![6, 5, 4]]);
}

/// A number behind the palette's end is black in RGB, as Pillow makes it.
#[test]
fn indices_behind_a_bmps_palette_are_kept() {
    let mut file = b"BM".to_vec();
    file.extend([[0, 0, 0, 0], [0, 0, 0, 0], [58, 0, 0, 0], [40, 0, 0, 0]].as_flattened());
    file.extend([[2, 0, 0, 0], [1, 0, 0, 0], [1, 0, 8, 0]].as_flattened());
    file.extend([0; 16]);
    file.extend([[1, 0, 0, 0], [0, 0, 0, 0], [3, 2, 1, 0]].as_flattened());
    file.extend([0, 77, 0, 0]);
    assert_eq!(pixels(&decode(&file, Mode::Unchanged).unwrap()), [vec![0], vec![77]]);
    assert_eq!(pixels(&decode(&file, Mode::Rgb).unwrap()), [vec![1, 2, 3], vec![0, 0, 0]]);
}
