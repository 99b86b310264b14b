//! What `forebay check` promises: a decode to the file's end finds what libjpeg finds.
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a failed unwrap fails the test; sizes are small"
)]

mod common;

use common::{Encoding, Numbers, copy_plan, decode, jpeg_of, render};
use forebay_codec::{Error, Options, decode_into, decoded_size, probe};
use forebay_core::{Layout, Limits, Region, Size};
use turbojpeg_sys as tj;

const SIZE: Size = Size { width: 96, height: 80 };

fn encodings() -> Vec<(&'static str, Encoding)> {
    let baseline = Encoding::default();
    let with = |subsampling| Encoding { subsampling, ..baseline };
    vec![
        ("baseline", baseline),
        ("grey", with(tj::TJSAMP_TJSAMP_GRAY)),
        ("4:4:4", with(tj::TJSAMP_TJSAMP_444)),
        ("optimised", Encoding { optimise: true, ..baseline }),
        ("restarts", Encoding { restart_rows: 1, ..baseline }),
        ("arithmetic", Encoding { arithmetic: true, ..baseline }),
        ("progressive", Encoding { progressive: true, ..baseline }),
    ]
}

/// Warnings of a decode that goes on to the end of the file.
fn warnings(bytes: &[u8]) -> Result<u32, Error> {
    let options = Options { layout: Layout::ChannelsLast, apply_orientation: false, to_end: true };
    let limits = Limits::default();
    let meta = probe(bytes, &limits)?;
    let mut out = vec![0; 3 * decoded_size(&meta, &options).pixels() as usize];
    decode_into(bytes, &meta, &options, &limits, &mut out)
}

#[derive(Debug, PartialEq, Clone, Copy)]
enum Verdict {
    Clean,
    Warned,
    Refused,
}

fn verdict(bytes: &[u8]) -> Verdict {
    match warnings(bytes) {
        Ok(0) => Verdict::Clean,
        Ok(_) => Verdict::Warned,
        Err(_) => Verdict::Refused,
    }
}

/// What libjpeg-turbo says of the whole file, by its own means. Where an error follows a warning,
/// it tells of the warning only.
fn reference(bytes: &[u8]) -> Verdict {
    // SAFETY: the handle is live until destroyed; `bytes` and `pixels` outlive the calls, and
    // `pixels` holds the image whose size the header gave.
    unsafe {
        let handle = tj::tj3Init(tj::TJINIT_TJINIT_DECOMPRESS as i32);
        let len = bytes.len() as _;
        let mut verdict = Verdict::Refused;
        // A warning about the header fails the call too, but not for good.
        let header = tj::tj3DecompressHeader(handle, bytes.as_ptr(), len);
        let warned = header != 0 && tj::tj3GetErrorCode(handle) == 0;
        if header == 0 || warned {
            let get = |name: tj::TJPARAM| tj::tj3Get(handle, name as i32) as usize;
            let bytes_of_image =
                3 * get(tj::TJPARAM_TJPARAM_JPEGWIDTH) * get(tj::TJPARAM_TJPARAM_JPEGHEIGHT);
            let mut pixels = vec![0; bytes_of_image];
            let (to, format) = (pixels.as_mut_ptr(), tj::TJPF_TJPF_RGB);
            let status = tj::tj3Decompress8(handle, bytes.as_ptr(), len, to, 0, format);
            verdict = match status {
                0 if !warned => Verdict::Clean,
                _ if status != 0 && tj::tj3GetErrorCode(handle) != 0 => Verdict::Refused,
                _ => Verdict::Warned,
            };
        }
        tj::tj3Destroy(handle);
        verdict
    }
}

/// `insert` between the image's data and EOI.
fn before_end(file: &[u8], insert: &[u8]) -> Vec<u8> {
    [&file[..file.len() - 2], insert, b"\xff\xd9"].concat()
}

fn scan_of(file: &[u8]) -> usize {
    file.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap()
}

#[test]
fn clean_files_have_no_warnings() {
    for (name, encoding) in encodings() {
        for seed in 0..40 {
            let mut numbers = Numbers(seed);
            let size = Size { width: numbers.range(1, 99), height: numbers.range(1, 99) };
            let file = jpeg_of(size, seed, encoding);
            assert_eq!(warnings(&file), Ok(0), "{name} {size}");
            // Fill bytes before a marker are legal, and so are bytes behind the end.
            assert_eq!(warnings(&before_end(&file, b"\xff\xff")), Ok(0), "{name} {size}");
            assert_eq!(warnings(&[&file[..], b"more"].concat()), Ok(0), "{name} {size}");
        }
    }
}

#[test]
fn fill_bytes_before_restarts_are_no_damage() {
    let file = jpeg_of(SIZE, 1, Encoding { restart_rows: 1, ..Encoding::default() });
    let (mut filled, mut restarts) = (vec![], 0);
    for (at, &byte) in file.iter().enumerate() {
        if byte == 0xff && (0xd0..=0xd7).contains(&file[at + 1]) && at > scan_of(&file) {
            filled.extend(b"\xff\xff");
            restarts += 1;
        }
        filled.push(byte);
    }
    assert!(restarts > 3);
    assert_eq!(warnings(&filled), Ok(0));
}

#[test]
fn garbage_before_the_end_is_a_warning() {
    for (name, encoding) in encodings() {
        let file = jpeg_of(SIZE, 1, encoding);
        for count in [1, 2, 9, 100, 20_000] {
            // Bytes that look like data, and such as look like stuffing.
            for garbage in [b"x".repeat(count), b"\xff\0".repeat(count)] {
                let damaged = before_end(&file, &garbage);
                let got = verdict(&damaged);
                assert_ne!(got, Verdict::Refused);
                // libjpeg's reader holds some bytes, and those of an arithmetic decoder belong to
                // its code; ours knows where the data ends.
                if reference(&damaged) == Verdict::Warned
                    || !(encoding.arithmetic || encoding.progressive)
                {
                    assert_eq!(got, Verdict::Warned, "{name}, {count} bytes");
                }
                assert!(decode(&damaged).is_ok(), "{name}: pixels do not depend on it");
            }
        }
    }
}

#[test]
fn restarts_behind_the_data_are_as_libjpeg_takes_them() {
    for (name, encoding) in encodings() {
        let file = jpeg_of(SIZE, 1, encoding);
        for insert in [&b"\xff\xd3"[..], b"\xff\xd3\xff\xd4", b"\xff\xd3garbage as long as this"] {
            let damaged = before_end(&file, insert);
            assert_eq!(verdict(&damaged), reference(&damaged), "{name}");
        }
    }
}

#[test]
fn tables_and_scans_behind_the_data_are_refused_whatever_the_region() {
    let bad_codes = [b"\xff\xc4\0\x14\0".to_vec(), vec![0xff; 16], vec![1]].concat();
    let segments: [(&str, &[u8]); 5] = [
        ("Bogus DQT index 15", b"\xff\xdb\0\x04\x0f\0"),
        ("Bogus marker length", b"\xff\xdb\0\x04\0\0"),
        ("Bogus Huffman table definition", &bad_codes),
        ("Bogus marker length", b"\xff\xdd\0\x03\0"),
        ("", b"\xff\xda\0\x08\x01\x09\0\0\x3f\0"),
    ];
    let corner = copy_plan(Region { x: 0, y: 0, width: 8, height: 1 });
    for (name, encoding) in encodings() {
        let file = jpeg_of(SIZE, 1, encoding);
        let scan = &file[scan_of(&file)..file.len() - 2];
        let repeated = ("", scan);
        for (reason, insert) in segments.iter().chain([&repeated]) {
            let damaged = before_end(&file, insert);
            // A progressive file may repeat a scan.
            if encoding.progressive && *insert == scan {
                assert_eq!(verdict(&damaged), reference(&damaged), "{name}");
                continue;
            }
            assert_ne!(reference(&damaged), Verdict::Clean, "{name}: {reason}");
            let error = warnings(&damaged).expect_err(name).to_string();
            assert!(error.contains(reason), "{name}: {error}, expected {reason}");
            assert_eq!(render(&damaged, &corner).unwrap_err().reason, error, "{name}");
        }
    }
}

/// Between restarts libjpeg passes over reserved markers, but not behind the last row, and only a
/// decode tells which it is.
#[test]
fn reserved_markers_behind_restarts_are_an_error_for_the_whole_file_alone() {
    let file = jpeg_of(SIZE, 1, Encoding { restart_rows: 1, ..Encoding::default() });
    let damaged = before_end(&file, b"\xff\x05\0\x03\0");
    assert!(warnings(&damaged).unwrap_err().to_string().contains("0x05"));
    assert!(decode(&damaged) == decode(&file));
    let plain = before_end(&jpeg_of(SIZE, 1, Encoding::default()), b"\xff\x05\0\x03\0");
    assert!(decode(&plain).unwrap_err().to_string().contains("0x05"));
}

#[test]
fn good_tables_behind_the_data_are_accepted() {
    for (name, encoding) in encodings() {
        let file = jpeg_of(SIZE, 1, encoding);
        let table = [b"\xff\xdb\0\x43\0".to_vec(), vec![1; 64]].concat();
        let comment = b"\xff\xfe\0\x05abc".to_vec();
        for insert in [table, comment] {
            let file = before_end(&file, &insert);
            assert_eq!((warnings(&file), reference(&file)), (Ok(0), Verdict::Clean), "{name}");
        }
    }
}

#[test]
fn nothing_that_libjpeg_finds_is_missed() {
    let mut numbers = Numbers(8);
    let (mut warned, mut more) = (0, 0);
    for round in 0..4200 {
        let encodings = encodings();
        let (name, encoding) = encodings[round % encodings.len()];
        let mut file = jpeg_of(SIZE, 3, encoding);
        let scan = scan_of(&file) + 14;
        let at = numbers.range(scan as u32, file.len() as u32 - 3) as usize;
        match numbers.range(0, 3) {
            0 => file[at] ^= 1 << numbers.range(0, 7),
            1 => file[at] = numbers.next() as u8,
            2 => drop(file.drain(at..(at + numbers.range(1, 20) as usize).min(file.len() - 2))),
            _ => drop(file.splice(at..at, [0xff, 0xd0 + numbers.range(0, 7) as u8])),
        }
        let (got, expected) = (verdict(&file), reference(&file));
        match expected {
            Verdict::Clean => more += u32::from(got != expected),
            Verdict::Warned => {
                warned += 1;
                assert_ne!(got, Verdict::Clean, "{name}, round {round}");
            }
            Verdict::Refused => assert_eq!(got, expected, "{name}, round {round}"),
        }
    }
    assert!(warned > 2000, "{warned} warned");
    // Our reader knows to the byte where data should end, and counts unknown codes.
    assert!(more < 600, "{more} more than libjpeg finds");
}
