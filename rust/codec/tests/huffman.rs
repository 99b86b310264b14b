//! PIX-1: our Huffman reader against libjpeg-turbo's own, behind its `TurboJPEG` API, on clean files,
//! files that are hard to read, and damaged ones.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a failed unwrap fails the test; sizes are small"
)]

mod common;

use common::{Encoding, Numbers, SUBSAMPLINGS, decode, jpeg, jpeg_of, picture};
use forebay_core::Size;
use turbojpeg_sys as tj;

/// Interleaved RGB as libjpeg-turbo decodes it, warnings or not; `None` if it gives nothing.
fn reference(bytes: &[u8]) -> Option<(Size, Vec<u8>)> {
    // SAFETY: the handle is live until destroyed; `bytes` and `pixels` outlive the calls, and
    // `pixels` holds the image whose size the header gave.
    unsafe {
        let handle = tj::tj3Init(tj::TJINIT_TJINIT_DECOMPRESS as i32);
        let header = tj::tj3DecompressHeader(handle, bytes.as_ptr(), bytes.len() as _);
        let get = |name: tj::TJPARAM| tj::tj3Get(handle, name as i32);
        let (width, height) =
            (get(tj::TJPARAM_TJPARAM_JPEGWIDTH), get(tj::TJPARAM_TJPARAM_JPEGHEIGHT));
        let mut found = None;
        if header == 0 && (1..2000).contains(&width) && (1..2000).contains(&height) {
            let mut pixels = vec![0; 3 * width as usize * height as usize];
            let format = tj::TJPF_TJPF_RGB;
            let len = bytes.len() as _;
            let status =
                tj::tj3Decompress8(handle, bytes.as_ptr(), len, pixels.as_mut_ptr(), 0, format);
            let fatal = status != 0 && tj::tj3GetErrorCode(handle) != 0;
            let size = Size { width: width as u32, height: height as u32 };
            found = (!fatal).then_some((size, pixels));
        }
        tj::tj3Destroy(handle);
        found
    }
}

#[test]
fn clean_files_give_libjpegs_pixels() {
    let mut numbers = Numbers(5);
    for round in 0..400 {
        let size = Size { width: numbers.range(1, 90), height: numbers.range(1, 90) };
        let encoding = Encoding {
            subsampling: SUBSAMPLINGS[round % SUBSAMPLINGS.len()],
            quality: numbers.range(1, 100) as i32,
            restart_rows: i32::from(numbers.one_in(3)),
            ..Encoding::default()
        };
        let bytes = jpeg_of(size, round as u64, encoding);
        assert_eq!(decode(&bytes).ok(), reference(&bytes), "{size} {encoding:?}");
    }
}

#[test]
fn noise_at_full_quality_uses_the_longest_codes() {
    // Random pixels at quality 100 need all sizes of coefficients, and bytes of 0xff in plenty.
    let mut numbers = Numbers(6);
    for subsampling in SUBSAMPLINGS {
        let size = Size { width: 257, height: 130 };
        let pixels = numbers.bytes(3 * size.pixels() as usize);
        let extremes: Vec<u8> = pixels.iter().map(|&p| if p < 128 { 0 } else { 255 }).collect();
        for pixels in [pixels, extremes] {
            let encoding = Encoding { subsampling, quality: 100, ..Encoding::default() };
            let bytes = jpeg(size, &pixels, encoding);
            assert_eq!(decode(&bytes).ok(), reference(&bytes));
        }
    }
}

#[test]
fn damaged_files_give_libjpegs_pixels_too() {
    let mut numbers = Numbers(7);
    let (mut compared, mut refused) = (0, 0);
    for round in 0..3000 {
        let size = Size { width: 64, height: 48 };
        let encoding = Encoding {
            subsampling: SUBSAMPLINGS[round % SUBSAMPLINGS.len()],
            restart_rows: i32::from(numbers.one_in(2)),
            ..Encoding::default()
        };
        let mut bytes = jpeg(size, &picture(size, 3), encoding);
        let scan = bytes.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap() + 14;
        for _ in 0..numbers.range(1, 4) {
            let at = numbers.range(scan as u32, bytes.len() as u32 - 2) as usize;
            bytes[at] = numbers.next() as u8;
        }
        match decode(&bytes) {
            Ok(got) => {
                compared += 1;
                assert_eq!(Some(got), reference(&bytes), "round {round}");
            }
            Err(_) => refused += 1,
        }
    }
    assert!(compared > 1000 && refused < 1500, "{compared} compared, {refused} refused");
}
