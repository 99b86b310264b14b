//! WebP, BMP, TIFF and GIF: what their headers declare, how their pixels become RGB, what is refused.

#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    reason = "test pictures are small, and a failed unwrap fails the test"
)]

mod common;
mod encoders;

use common::{copy_plan, crop, decode, decode_with, picture, render};
use encoders::pages::{
    BITS, COMPRESSION, EXTRA, FILL_ORDER, HEIGHT, ORIENTATION, PHOTOMETRIC, PLANAR, SAMPLE_FORMAT,
    STRIP_BYTES, STRIP_OFFSETS, TILE_BYTES, TILE_HEIGHT, TILE_OFFSETS, TILE_WIDTH, WIDTH, tagged,
    two_pixels,
};
use encoders::{bmp, gif, tiff, webp};
use forebay_codec::{Error, Options, probe, transparent};
use forebay_core::{ErrorKind, Format, HasKind, Limits, Orientation, Region, Size};

const SIZE: Size = Size { width: 7, height: 5 };

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

/// A RIFF file of chunks.
fn riff(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut body = b"WEBP".to_vec();
    for (kind, content) in chunks {
        body.extend(*kind);
        body.extend((content.len() as u32).to_le_bytes());
        body.extend(*content);
        body.resize(body.len().next_multiple_of(2), 0);
    }
    [b"RIFF", &(body.len() as u32).to_le_bytes()[..], &body].concat()
}

/// The VP8L chunk's content of a simple file.
fn bitstream(file: &[u8]) -> &[u8] {
    assert_eq!(&file[12..16], b"VP8L");
    &file[20..]
}

/// A VP8X chunk's content.
fn extended(flags: u8, canvas: Size) -> Vec<u8> {
    let side = |side: u32| (side - 1).to_le_bytes();
    [&[flags, 0, 0, 0], &side(canvas.width)[..3], &side(canvas.height)[..3]].concat()
}

#[test]
fn headers_are_read_and_pixels_are_exact() {
    let rgb = picture(SIZE, 1);
    let red: Vec<u8> = rgb.chunks(3).flat_map(|pixel| [pixel[0]; 3]).collect();
    for (format, file, expected) in [
        (Format::WebP, webp(SIZE, &rgb), &rgb),
        (Format::Bmp, bmp(SIZE, &rgb), &rgb),
        (Format::Tiff, tiff(SIZE, &rgb), &rgb),
        (Format::Gif, gif(SIZE, &rgb), &red),
    ] {
        let meta = probe(&file, &Limits::default()).unwrap();
        assert_eq!((meta.format, meta.size, meta.components), (format, SIZE, 3));
        assert!(!transparent(&file, &meta));
        assert!(decode(&file).unwrap() == (SIZE, expected.clone()), "{format:?}");
        let region = Region { x: 2, y: 1, width: 4, height: 3 };
        let (part, _) = render(&file, &copy_plan(region)).unwrap();
        assert!(part == crop(expected, SIZE, region), "a region of {format:?}");
        let limits = Limits { max_pixels: 34, ..Limits::default() };
        assert!(matches!(probe(&file, &limits), Err(Error::TooLarge { limit: 34, .. })));
    }
}

#[test]
fn tiff_pixels_become_rgb() {
    let cases: [(Vec<u8>, [[u8; 3]; 2]); 11] = [
        (two_pixels(8, 1, 1, &[], &[9, 200]), [[9; 3], [200; 3]]),
        (two_pixels(8, 1, 0, &[], &[9, 200]), [[246; 3], [55; 3]]),
        (two_pixels(1, 1, 1, &[], &[0b0100_0000]), [[0; 3], [255; 3]]),
        (two_pixels(4, 1, 0, &[], &[0xf8]), [[0; 3], [119; 3]]),
        (two_pixels(16, 1, 1, &[], &[255, 1, 0, 200]), [[1; 3], [200; 3]]),
        (two_pixels(8, 2, 1, &[(EXTRA, &[2])], &[9, 0, 200, 1]), [[9; 3], [200; 3]]),
        (two_pixels(8, 3, 2, &[], &[1, 2, 3, 4, 5, 6]), [[1, 2, 3], [4, 5, 6]]),
        (two_pixels(8, 4, 2, &[(EXTRA, &[0])], &[1, 2, 3, 0, 4, 5, 6, 0]), [[1, 2, 3], [4, 5, 6]]),
        (
            two_pixels(8, 4, 2, &[(EXTRA, &[1])], &[9, 7, 0, 10, 1, 2, 3, 0]),
            [[229, 178, 0], [0; 3]],
        ),
        (two_pixels(8, 4, 5, &[], &[200, 40, 10, 30, 0, 0, 0, 0]), [[49, 190, 216], [255; 3]]),
        (
            two_pixels(
                8,
                3,
                2,
                &[(PLANAR, &[2]), (STRIP_OFFSETS, &[8, 10, 12]), (STRIP_BYTES, &[2, 2, 2])],
                &[1, 4, 2, 5, 3, 6],
            ),
            [[1, 2, 3], [4, 5, 6]],
        ),
    ];
    for (number, (file, expected)) in cases.iter().enumerate() {
        let (found, pixels) = decode(file).unwrap();
        assert_eq!(found, size(2, 1));
        assert_eq!(pixels.as_chunks::<2>().0.as_flattened(), expected.as_flattened(), "{number}");
    }
}

#[test]
fn tiff_tiles_end_where_the_image_does() {
    // Two tiles across and down, of 16 x 16 greys each: their number, and their column.
    let tiles: Vec<u8> =
        (0..4).flat_map(|tile| (0..=255_u8).map(move |at| 64 * tile + at % 16)).collect();
    let tags: [(u16, &[u32]); 8] = [
        (WIDTH, &[20]),
        (HEIGHT, &[17]),
        (BITS, &[8]),
        (PHOTOMETRIC, &[1]),
        (TILE_WIDTH, &[16]),
        (TILE_HEIGHT, &[16]),
        (TILE_OFFSETS, &[8, 264, 520, 776]),
        (TILE_BYTES, &[256; 4]),
    ];
    let (found, pixels) = decode(&tagged(&tags, &tiles)).unwrap();
    assert_eq!(found, size(20, 17));
    for (at, pixel) in pixels.chunks(3).enumerate() {
        let (x, y) = (at % 20, at / 20);
        let expected = 64 * (2 * (y / 16) + x / 16) + x % 16;
        assert_eq!(pixel, [expected as u8; 3], "{x} {y}");
    }
}

/// A pixel in tiles of a million columns each would be read at a terabyte's cost.
#[test]
fn tiles_far_larger_than_the_image_are_refused() {
    let tags: [(u16, &[u32]); 4] = [
        (TILE_WIDTH, &[1 << 20]),
        (TILE_HEIGHT, &[1 << 20]),
        (TILE_OFFSETS, &[8]),
        (TILE_BYTES, &[1]),
    ];
    let error = decode(&two_pixels(8, 1, 1, &tags, &[1])).unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
}

#[test]
fn orientation_is_read_from_tiff_and_webp() {
    let turned = Orientation::from_exif(6).unwrap();
    let of = |file: &[u8]| probe(file, &Limits::default()).unwrap().orientation;
    assert_eq!(of(&two_pixels(8, 1, 1, &[(ORIENTATION, &[6])], &[1, 2])), turned);
    assert_eq!(of(&two_pixels(8, 1, 1, &[(ORIENTATION, &[9])], &[1, 2])), Orientation::default());
    assert_eq!(
        of(&two_pixels(8, 1, 1, &[(ORIENTATION, &[1, 2])], &[1, 2])),
        Orientation::default()
    );

    let exif = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    let simple = webp(SIZE, &picture(SIZE, 1));
    let with = |flags, exif: &[u8]| {
        riff(&[(b"VP8X", &extended(flags, SIZE)), (b"VP8L", bitstream(&simple)), (b"EXIF", exif)])
    };
    assert_eq!(of(&with(8, exif)), turned);
    assert_eq!(of(&with(8, &[b"Exif\0\0", &exif[..]].concat())), turned);
    assert_eq!(of(&with(0, exif)), Orientation::default(), "not declared");
    for damaged in [with(8, &exif[..9]), with(8, b"")] {
        assert_eq!(of(&damaged), Orientation::default());
        assert!(decode(&damaged).is_ok(), "EXIF is never fatal");
    }
}

#[test]
fn declared_metadata_may_be_missing_from_a_webp() {
    let simple = webp(SIZE, &picture(SIZE, 1));
    let file = riff(&[(b"VP8X", &extended(0x2c, SIZE)), (b"VP8L", bitstream(&simple))]);
    assert!(decode(&file).unwrap() == decode(&simple).unwrap());
}

#[test]
fn alpha_is_dropped_whatever_it_is() {
    let rgba: Vec<u8> = (0..4 * SIZE.pixels()).map(|at| (at * 37) as u8).collect();
    let rgb: Vec<u8> = rgba.chunks(4).flat_map(|pixel| pixel[..3].to_vec()).collect();
    let file = webp(SIZE, &rgba);
    let meta = probe(&file, &Limits::default()).unwrap();
    assert!(transparent(&file, &meta) && meta.components == 4);
    assert!(decode(&file).unwrap().1 == rgb);
    let file = two_pixels(8, 2, 1, &[(EXTRA, &[2])], &[9, 0, 200, 1]);
    assert!(transparent(&file, &probe(&file, &Limits::default()).unwrap()));
}

#[test]
fn first_frames_lie_on_their_canvas() {
    let simple = webp(SIZE, &picture(SIZE, 1));
    let canvas = size(12, 9);
    let mut frame = [[4_u32, 2], [6, 4]].as_flattened().iter().fold(vec![], |mut out, value| {
        out.extend(&(value / if out.len() < 6 { 2 } else { 1 }).to_le_bytes()[..3]);
        out
    });
    frame.extend([0; 4]);
    frame.extend(b"VP8L");
    frame.extend((bitstream(&simple).len() as u32).to_le_bytes());
    frame.extend(bitstream(&simple));
    let file = riff(&[(b"VP8X", &extended(2, canvas)), (b"ANIM", &[255; 6]), (b"ANMF", &frame)]);
    let (found, pixels) = decode(&file).unwrap();
    assert_eq!(found, canvas);
    let region = Region { x: 4, y: 2, width: SIZE.width, height: SIZE.height };
    assert!(crop(&pixels, canvas, region) == picture(SIZE, 1));
    let around: u32 = pixels.iter().map(|&value| u32::from(value)).sum();
    assert_eq!(around, picture(SIZE, 1).iter().map(|&value| u32::from(value)).sum(), "black");

    let mut out = Vec::new();
    let mut encoder = gif::Encoder::new(&mut out, 4, 2, &[1, 2, 3, 10, 20, 30, 7, 8, 9]).unwrap();
    let mut image = gif::Frame::from_indexed_pixels(2, 1, vec![1, 0], Some(2));
    (image.left, image.top) = (1, 1);
    encoder.write_frame(&image).unwrap();
    encoder.write_frame(&gif::Frame::from_indexed_pixels(4, 2, vec![1; 8], None)).unwrap();
    drop(encoder);
    let meta = probe(&out, &Limits::default()).unwrap();
    assert!(transparent(&out, &meta));
    let (free, one, zero) = ([7, 8, 9], [10, 20, 30], [1, 2, 3]);
    let expected = [[free; 4], [free, one, zero, free]];
    assert_eq!(decode(&out).unwrap().1, expected.as_flattened().as_flattened());
}

/// A BMP of 4 x 3 pixels, three colours and run-length codes of 8 bits.
fn run_lengths(codes: &[u8]) -> Vec<u8> {
    let mut file = b"BM".to_vec();
    file.extend([0, 0, 66].iter().flat_map(|value: &u32| value.to_le_bytes()));
    let header: [u32; 10] = [40, 4, 3, 8 << 16 | 1, 1, 0, 0, 0, 3, 0];
    file.extend(header.iter().flat_map(|value| value.to_le_bytes()));
    file.extend([30, 20, 10, 0, 3, 2, 1, 0, 9, 8, 7, 0]);
    file.extend(codes);
    file
}

#[test]
fn pixels_that_run_lengths_skip_have_the_first_colour() {
    // Four of colour 1, the end of the row, one right and one up, colours 2 and 1, the end.
    let file = run_lengths(&[4, 1, 0, 0, 0, 2, 1, 1, 1, 2, 1, 1, 0, 1]);
    let (zero, one, two) = ([10, 20, 30], [1, 2, 3], [7, 8, 9]);
    let expected = [[zero, two, one, zero], [zero; 4], [one; 4]];
    assert_eq!(decode(&file).unwrap().1, expected.as_flattened().as_flattened());
    let error = decode(&run_lengths(&[4, 1, 0])).unwrap_err();
    assert!(matches!(error, Error::Truncated { .. }), "{error}");
}

#[test]
fn what_is_not_decoded_is_named() {
    let reason = |file: &[u8]| {
        let error = decode(file).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        error.to_string()
    };
    let page = |more: &[(u16, &[u32])]| two_pixels(8, 1, 1, more, &[1, 2]);
    for (method, name) in [
        (2, "CCITT modified Huffman compression"),
        (3, "CCITT group 3 compression"),
        (6, "old-style JPEG compression"),
        (50000, "ZSTD compression"),
        (34712, "compression 34712"),
    ] {
        let expected = format!("TIFF with {name} is not decoded");
        assert_eq!(reason(&page(&[(COMPRESSION, &[method])])), expected);
    }
    assert_eq!(
        reason(&page(&[(COMPRESSION, &[4])])),
        "TIFF with Gray(8) pixels and CCITT group 4 compression is not decoded"
    );
    assert_eq!(
        reason(&two_pixels(16, 1, 1, &[(COMPRESSION, &[7])], &[1; 4])),
        "TIFF with Gray(16) pixels and JPEG compression is not decoded"
    );
    assert_eq!(
        reason(&two_pixels(16, 1, 3, &[], &[1; 4])),
        "TIFF with a palette and 1 samples of 16 bits is not decoded"
    );
    assert_eq!(
        reason(&page(&[(FILL_ORDER, &[2])])),
        "TIFF with bits in reversed order is not decoded"
    );
    assert_eq!(
        reason(&page(&[(SAMPLE_FORMAT, &[2])])),
        "TIFF with signed or floating-point samples is not decoded"
    );
    let mut file = bmp(SIZE, &picture(SIZE, 1));
    file[30] = 4;
    assert_eq!(reason(&file), "BMP with JPEG compression is not decoded");
}

#[test]
fn accepting_truncated_files_spares_none_of_these() {
    let limits = Limits { accept_truncated: true, ..Limits::default() };
    let rgb = picture(SIZE, 1);
    for file in [webp(SIZE, &rgb), bmp(SIZE, &rgb), tiff(SIZE, &rgb), gif(SIZE, &rgb)] {
        let error = decode_with(&file[..file.len() - 40], Options::default(), &limits).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Data, "{error}");
    }
}
