//! Colours, orientations and channels: what decoding gives, per format.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::unwrap_used,
    reason = "test pictures are small, and a failed unwrap fails the test"
)]

mod common;

use common::uniform_jpeg::{Component, uniform};
use common::{
    Encoding, copy_axis, decode, decode_with, jpeg, jpeg_of, pass, picture, png, raw_write, render,
    stored_position, with_exif,
};
use forebay_codec::{Error, Options, probe};
use forebay_core::{
    Channels, ErrorKind, Format, HasKind, ImagePlan, Layout, Limits, Orientation, Region, Size,
    Write,
};
use png::{BitDepth, ColorType};

const GRADIENT: Size = Size { width: 24, height: 16 };

/// R = 10 x, G = 15 y.
fn gradient() -> Vec<u8> {
    let pixel = |x: u32, y: u32| [(10 * x) as u8, (15 * y) as u8, 128];
    (0..16).flat_map(|y| (0..24).flat_map(move |x| pixel(x, y))).collect()
}

fn near(found: &[u8], expected: &[u8], tolerance: u8) -> bool {
    found.iter().zip(expected).all(|(a, b)| a.abs_diff(*b) <= tolerance)
}

#[test]
fn exif_orientations_are_applied() {
    // T11
    let encoding = Encoding {
        subsampling: turbojpeg_sys::TJSAMP_TJSAMP_444,
        quality: 100,
        ..Encoding::default()
    };
    let plain = jpeg(GRADIENT, &gradient(), encoding);
    let corners = [[1, 0], [230, 0], [229, 225], [0, 226], [1, 0], [0, 226], [229, 225], [230, 0]];
    for (orientation, corner) in (1..=8).zip(corners) {
        let file = with_exif(&plain, orientation);
        let upright = Options { layout: Layout::ChannelsLast, ..Options::default() };
        let (size, pixels) = decode_with(&file, upright, &Limits::default()).unwrap();
        let expected = if orientation < 5 { GRADIENT } else { GRADIENT.transposed() };
        assert_eq!(size, expected, "orientation {orientation}");
        assert!(near(&pixels[..2], &corner, 2), "orientation {orientation}: {:?}", &pixels[..2]);

        let (stored_size, stored) = decode(&file).unwrap();
        assert_eq!(stored_size, GRADIENT, "ignored");
        let named = Orientation::from_exif(u16::from(orientation)).unwrap();
        for (i, pixel) in pixels.chunks_exact(3).enumerate() {
            let (x, y) = (i as u32 % size.width, i as u32 / size.width);
            let (x, y) = stored_position(named, GRADIENT, x, y);
            let at = 3 * (y * GRADIENT.width + x) as usize;
            assert_eq!(pixel, &stored[at..at + 3]);
        }
    }
}

#[test]
fn only_the_first_exif_block_counts_and_malformed_ones_are_ignored() {
    let plain = jpeg(GRADIENT, &gradient(), Encoding::default());
    let orientation = |file: &[u8]| probe(file, &Limits::default()).unwrap().orientation;
    let twice = with_exif(&with_exif(&plain, 3), 6);
    assert_eq!(Some(orientation(&twice)), Orientation::from_exif(6));
    assert_eq!(orientation(&with_exif(&plain, 0)), Orientation::default());
    assert_eq!(orientation(&with_exif(&plain, 9)), Orientation::default());
    let mut broken = with_exif(&plain, 6);
    broken[16] = 0xff; // offset of the first directory
    assert_eq!(orientation(&broken), Orientation::default());
}

#[test]
fn png_exif_is_read_wherever_it_stands() {
    let file = png(GRADIENT, ColorType::Rgb, BitDepth::Eight, &gradient());
    let (head, end) = file.split_at(file.len() - 12);
    let block = b"II\x2a\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    let mut with = head.to_vec();
    with.extend((block.len() as u32).to_be_bytes());
    with.extend(b"eXIf");
    with.extend(block);
    with.extend([0; 4]);
    with.extend(end);
    let meta = probe(&with, &Limits::default()).unwrap();
    assert_eq!(Some(meta.orientation), Orientation::from_exif(6));
    let (size, pixels) = decode_with(&with, Options::default(), &Limits::default()).unwrap();
    assert_eq!(size, GRADIENT.transposed());
    assert_eq!((pixels[0], pixels[16 * 24]), (0, 225), "planes; the lower left corner");
}

#[test]
fn cmyk_equals_pillow() {
    // T13: inks (200, 40, 10, 30), stored as 255 - ink.
    let inks = [200, 40, 10, 30_u8];
    let stored = inks.map(|ink| Component::flat(255 - ink));
    for adobe in [Some(0), None] {
        let file = uniform(20, 10, &stored, adobe);
        let (size, pixels) = decode(&file).unwrap();
        assert_eq!(size, Size { width: 20, height: 10 });
        for pixel in pixels.chunks_exact(3) {
            assert!(near(pixel, &[49, 190, 216], 1), "{adobe:?}: {pixel:?}");
        }
        assert_eq!(probe(&file, &Limits::default()).unwrap().components, 4);
    }
    // YCCK, by the encoder, from the same inks.
    let size = Size { width: 33, height: 17 };
    let cmyk: Vec<u8> = inks.map(|ink| 255 - ink).repeat(size.pixels() as usize);
    let file = jpeg(size, &cmyk, Encoding { quality: 100, ..Encoding::default() });
    assert!(file.windows(6).any(|w| w == b"Adobe\0"));
    let (_, pixels) = decode(&file).unwrap();
    for pixel in pixels.chunks_exact(3) {
        assert!(near(pixel, &[49, 190, 216], 2), "{pixel:?}");
    }
    // A region of it has its margin cut off in four bytes a pixel.
    let region = Region { x: 19, y: 3, width: 9, height: 7 };
    let (part, _) = render(&file, &common::copy_plan(region)).unwrap();
    assert_eq!(part, common::crop(&pixels, size, region));
}

#[test]
fn odd_samplings_decode_or_are_refused() {
    // T07: never zeros with success.
    let samplings: [[(u8, u8); 3]; 5] = [
        [(4, 1), (1, 1), (1, 1)],
        [(4, 2), (1, 1), (1, 1)],
        [(1, 1), (2, 2), (2, 2)],
        [(1, 2), (1, 1), (1, 1)],
        [(2, 2), (2, 1), (1, 2)],
    ];
    for sampling in samplings {
        let component = |value, (horizontal, vertical)| Component { value, horizontal, vertical };
        let values = [180, 128, 128];
        let components: Vec<_> =
            values.into_iter().zip(sampling).map(|(v, s)| component(v, s)).collect();
        let (_, pixels) = decode(&uniform(50, 21, &components, None)).unwrap();
        assert!(near(&pixels, &[180; 50 * 21 * 3], 1), "{sampling:?}");
    }
    let fractional = [(3, 1), (2, 1), (1, 1)].map(|(horizontal, vertical)| Component {
        value: 200,
        horizontal,
        vertical,
    });
    let error = decode(&uniform(50, 21, &fractional, None)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
}

#[test]
fn unusual_processes_are_refused_by_name() {
    let reason = |edit: &dyn Fn(&mut [u8], usize)| {
        let mut file = jpeg(GRADIENT, &gradient(), Encoding::default());
        let frame = file.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
        edit(&mut file, frame);
        decode(&file).unwrap_err().to_string()
    };
    assert_eq!(reason(&|file, at| file[at + 4] = 12), "12-bit JPEG is not decoded");
    assert_eq!(reason(&|file, at| file[at + 1] = 0xc3), "lossless JPEG is not decoded");
    assert_eq!(reason(&|file, at| file[at + 1] = 0xc5), "hierarchical JPEG is not decoded");
    assert_eq!(
        reason(&|file, at| file[at + 5..at + 7].fill(0)),
        "JPEG of undeclared height is not decoded"
    );
    let two = uniform(8, 8, &[Component::flat(9), Component::flat(9)], None);
    assert_eq!(decode(&two).unwrap_err().to_string(), "2-component JPEG is not decoded");
}

#[test]
fn arithmetic_coding_is_decoded() {
    let size = Size { width: 60, height: 40 };
    let (_, huffman) = decode(&jpeg_of(size, 4, Encoding::default())).unwrap();
    let arithmetic = Encoding { arithmetic: true, ..Encoding::default() };
    assert!(decode(&jpeg_of(size, 4, arithmetic)).unwrap().1 == huffman);
}

/// Three pixels as stored and as RGB.
type Case = (ColorType, BitDepth, &'static [u8], [[u8; 3]; 3]);

#[test]
fn png_colour_types_become_rgb() {
    // T14, as Pillow's convert("RGB").
    let size = Size { width: 3, height: 1 };
    let cases: [Case; 10] = [
        (ColorType::Grayscale, BitDepth::Eight, &[1, 2, 3], [[1; 3], [2; 3], [3; 3]]),
        (ColorType::Grayscale, BitDepth::One, &[0b1010_0000], [[255; 3], [0; 3], [255; 3]]),
        (ColorType::Grayscale, BitDepth::Two, &[0b0001_1100], [[0; 3], [85; 3], [255; 3]]),
        (ColorType::Grayscale, BitDepth::Four, &[0x0f, 0x80], [[0; 3], [255; 3], [136; 3]]),
        (
            ColorType::GrayscaleAlpha,
            BitDepth::Eight,
            &[1, 0, 2, 9, 3, 255],
            [[1; 3], [2; 3], [3; 3]],
        ),
        (
            ColorType::Rgba,
            BitDepth::Eight,
            &[1, 2, 3, 0, 4, 5, 6, 128, 7, 8, 9, 255],
            [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
        ),
        (
            ColorType::Indexed,
            BitDepth::Eight,
            &[2, 0, 1],
            [[0, 255, 0], [10, 20, 30], [200, 100, 50]],
        ),
        (
            ColorType::Indexed,
            BitDepth::Two,
            &[0b1000_0100],
            [[0, 255, 0], [10, 20, 30], [200, 100, 50]],
        ),
        // The high byte.
        (
            ColorType::Rgb,
            BitDepth::Sixteen,
            &[1, 255, 2, 0, 3, 7, 4, 0, 5, 0, 6, 0, 7, 0, 8, 0, 255, 255],
            [[1, 2, 3], [4, 5, 6], [7, 8, 255]],
        ),
        (ColorType::Grayscale, BitDepth::Sixteen, &[0, 255, 2, 0, 3, 9], [[0; 3], [2; 3], [3; 3]]),
    ];
    for (colour, depth, data, expected) in cases {
        let (found, pixels) = decode(&png(size, colour, depth, data)).unwrap();
        assert_eq!(found, size);
        assert_eq!(pixels.as_chunks::<3>().0, expected, "{colour:?} {depth:?}");
    }
}

#[test]
fn masks_keep_palette_indices() {
    // T16: one channel, not the palette's colours.
    let size = Size { width: 3, height: 1 };
    let plan = ImagePlan {
        erase: vec![],
        region: Region { x: 1, y: 0, width: 2, height: 1 },
        transpose: false,
        passes: vec![pass(copy_axis(2), copy_axis(1))],
        write: Write { channels: Channels::Index, ..raw_write(Layout::Contiguous) },
    };
    let indexed = png(size, ColorType::Indexed, BitDepth::Two, &[0b1000_0100]);
    assert_eq!(render(&indexed, &plan).unwrap().0, [0, 1]);
    let grey = png(size, ColorType::Grayscale, BitDepth::Eight, &[7, 8, 9]);
    assert_eq!(render(&grey, &plan).unwrap().0, [8, 9]);
    let jpeg = uniform(3, 1, &[Component::flat(77)], None);
    assert_eq!(render(&jpeg, &plan).unwrap().0, [77, 77]);
}

#[test]
fn headers_say_what_the_file_holds() {
    let size = Size { width: 40, height: 30 };
    let limits = Limits::default();
    let encoding = Encoding { progressive: true, ..Encoding::default() };
    let meta = probe(&jpeg_of(size, 1, encoding), &limits).unwrap();
    assert_eq!((meta.format, meta.size, meta.components), (Format::Jpeg, size, 3));
    assert!(meta.progressive);
    let file = png(size, ColorType::Rgb, BitDepth::Eight, &picture(size, 1));
    // T04: the content decides, whatever the file is called.
    let meta = probe(&file, &limits).unwrap();
    assert_eq!((meta.format, meta.size, meta.bytes), (Format::Png, size, file.len()));
    let small = Limits { max_pixels: 1199, ..limits };
    assert!(matches!(probe(&file, &small), Err(Error::TooLarge { limit: 1199, .. })));
}

#[test]
fn colours_are_what_markers_before_the_scan_say() {
    // libjpeg looks no further, and pixels of a GPU's decoders are YCbCr if the probe says so.
    let size = Size { width: 32, height: 32 };
    let plain = jpeg_of(size, 1, Encoding::default());
    let app = |marker: u8, content: &[u8]| {
        let length = u16::try_from(content.len() + 2).unwrap().to_be_bytes();
        [&[0xff, marker], &length[..], content].concat()
    };
    let jfif = app(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    let adobe = |transform| app(0xee, &[b"Adobe\0\x64\0\0\0\0", &[transform][..]].concat());
    // Without the markers that the encoder writes.
    let start = plain.windows(2).position(|pair| pair == [0xff, 0xdb]).unwrap();
    let file = |before: &[u8], behind: &[u8]| {
        let (data, end) = plain[start..].split_at(plain.len() - start - 2);
        [&[0xff, 0xd8], before, data, behind, end].concat()
    };
    let is_ycbcr = |file: &[u8]| probe(file, &Limits::default()).unwrap().baseline.is_some();
    assert!(is_ycbcr(&file(&jfif, &[])) && is_ycbcr(&file(&adobe(1), &[])));
    for behind in [&[][..], &jfif, &adobe(1)] {
        assert!(!is_ycbcr(&file(&adobe(0), behind)), "{behind:?}");
    }
    assert!(is_ycbcr(&file(&jfif, &adobe(0))));
}
