//! PIX-1 from files: what the Huffman kernels make of a file are the planes that threads'
//! coefficients become, byte for byte; what is not clean they leave.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "../../../rust/codec/tests/common/mod.rs"]
mod codec;
mod common;

use codec::uniform_jpeg::{Component, uniform};
use codec::{Encoding, Numbers, OF_COLOUR, copy_plan, jpeg_of, random_region};
use common::{oracle, slot_bytes};
use forebay_codec::{Pixels as Input, probe, render_into};
use forebay_core::{ImagePlan, Limits, Region, Size};
use forebay_cuda::pack::{
    Kernel, Packed, RenderItem, Scan, ScanItem, ScanScratch, lay_out, pack, pack_scans,
};
use forebay_kernel_tests::{run, run_at_once, run_in, scratch};
use turbojpeg_sys as tj;

/// Decodes the regions of files, all in one batch: for each the rendered plan, or `None` if it is
/// left to others. With `patience` every chunk that has not settled gets its turn.
fn decode(files: &[(&[u8], ImagePlan)], patience: bool) -> Vec<Option<Vec<u8>>> {
    decode_by(run_in, files, patience)
}

fn decode_by(
    launch: unsafe fn(&Packed, &mut [u64]),
    files: &[(&[u8], ImagePlan)],
    patience: bool,
) -> Vec<Option<Vec<u8>>> {
    let metas: Vec<_> =
        files.iter().map(|(file, _)| probe(file, &Limits::default()).unwrap()).collect();
    let scans: Vec<Scan> = files.iter().map(|(file, _)| scan_of(file).unwrap()).collect();
    // Aligned, and no byte longer than whole words.
    let copies: Vec<Vec<u32>> = files.iter().map(|(file, _)| words(file)).collect();
    let items: Vec<ScanItem<'_>> = scans
        .iter()
        .zip(files)
        .zip(metas.iter().zip(&copies))
        .map(|((scan, (file, plan)), (meta, copy))| {
            let (components, coefficients) = scan.window(plan.region);
            ScanItem {
                scan,
                size: meta.size,
                file: copy.as_ptr() as u64,
                file_bytes: file.len(),
                components,
                coefficients,
            }
        })
        .collect();
    let layout = ScanScratch::new(&items);
    let mut memory = scratch(layout.bytes);
    let bytes: usize =
        items.iter().map(|item| lay_out(item.size, &item.components, 0, 0).bytes).sum();
    let mut planes = vec![!0_u64; bytes.div_ceil(8)];
    let (mut packed, sources) =
        pack_scans(&items, &layout, memory.as_mut_ptr() as u64, planes.as_mut_ptr() as u64);
    if patience {
        let settle = packed.launches.iter().position(|it| it.kernel == Kernel::HuffmanSettle);
        let settle = settle.unwrap();
        let more = vec![packed.launches[settle]; 1000];
        packed.launches.splice(settle..settle, more);
    }
    // SAFETY: files, scratch and planes are live memory, each of its own.
    unsafe { launch(&packed, &mut memory) };
    // SAFETY: any bytes are numbers.
    let (_, status, _) = unsafe { memory.align_to::<u32>() };
    let render = |((_, plan), (source, status)): (&(&[u8], ImagePlan), (_, &u32))| {
        let mut slot = vec![0; slot_bytes(plan)];
        let (address, slot_bytes) = (slot.as_mut_ptr() as u64, slot.len());
        let packed = pack(&[RenderItem { source, plan, slot: address, slot_bytes }], &[]);
        // SAFETY: planes and slot are live memory.
        unsafe { run(&packed) };
        assert!(*status <= 1, "{status}");
        (*status == 1).then_some(slot)
    };
    files.iter().zip(sources.into_iter().zip(status)).map(render).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    let word = |chunk: &[u8]| {
        let mut word = [0xa5; 4];
        word[..chunk.len()].copy_from_slice(chunk);
        u32::from_ne_bytes(word)
    };
    bytes.chunks(4).map(word).collect()
}

fn scan_of(file: &[u8]) -> Option<Scan> {
    Scan::parse(file, probe(file, &Limits::default()).ok()?.baseline?)
}

fn size_of(file: &[u8]) -> Size {
    probe(file, &Limits::default()).unwrap().size
}

/// Every plan must come out as from the CPU.
fn check(files: &[(&[u8], ImagePlan)]) {
    for ((file, plan), slot) in files.iter().zip(decode(files, true)) {
        let expected = oracle(Input::Encoded(file), size_of(file), plan);
        assert!(slot.expect("is clean") == expected, "{} {:?}", size_of(file), plan.region);
    }
}

fn whole(file: &[u8]) -> (&[u8], ImagePlan) {
    (file, copy_plan(Region::whole(size_of(file))))
}

#[test]
fn every_size_equals_libjpeg() {
    let mut numbers = Numbers(41);
    for subsampling in OF_COLOUR {
        let files: Vec<Vec<u8>> = (1..=40)
            .map(|width| {
                let size = Size { width, height: numbers.range(1, 40) };
                jpeg_of(size, u64::from(width), Encoding { subsampling, ..Encoding::default() })
            })
            .collect();
        let both = files.iter().flat_map(|file| {
            let region = random_region(&mut numbers, size_of(file));
            [whole(file), (&**file, copy_plan(region))]
        });
        check(&both.collect::<Vec<_>>());
    }
}

/// These take hundreds of chunks, and codes of all lengths.
#[test]
fn regions_of_large_images_equal_libjpeg() {
    let mut numbers = Numbers(42);
    let size = Size { width: 517, height: 389 };
    for subsampling in OF_COLOUR {
        for quality in [10, 75, 100] {
            for optimise in [false, true] {
                let encoding = Encoding { subsampling, optimise, quality, ..Encoding::default() };
                let file = jpeg_of(size, 7, encoding);
                let mut regions = vec![Region::whole(size)];
                regions.extend((0..3).map(|_| random_region(&mut numbers, size)));
                let plans: Vec<_> =
                    regions.iter().map(|&region| (&*file, copy_plan(region))).collect();
                check(&plans);
                if quality < 100 {
                    assert!(decode(&plans, false).iter().all(Option::is_some), "{encoding:?}");
                }
            }
        }
    }
}

/// Some files whose chunks take several rounds, and more than one block of threads.
#[test]
fn threads_at_once_do_what_they_do_in_turn() {
    let size = Size { width: 517, height: 389 };
    let mut numbers = Numbers(44);
    let files = [0, 1, 2].map(|seed| {
        let subsampling = tj::TJSAMP_TJSAMP_420;
        jpeg_of(size, seed, Encoding { subsampling, quality: 85, ..Encoding::default() })
    });
    let plans: Vec<_> =
        files.iter().map(|file| (&**file, copy_plan(random_region(&mut numbers, size)))).collect();
    let expected = decode(&plans, false);
    assert!(expected.iter().all(Option::is_some));
    assert!(decode_by(run_at_once, &plans, false) == expected);
}

/// The same picture, with AC tables that change their numbers.
fn crossed(file: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    let mut at = 2;
    loop {
        let length = usize::from(u16::from_be_bytes([file[at + 2], file[at + 3]]));
        let segment = at + 4..at + 2 + length;
        match file[at + 1] {
            0xc4 => {
                let mut table = segment.start;
                while table < segment.end {
                    if file[table] >> 4 == 1 {
                        file[table] ^= 1;
                    }
                    let codes = file[table + 1..table + 17].iter().map(|&count| usize::from(count));
                    table += 17 + codes.sum::<usize>();
                }
            }
            0xda => {
                for component in 0..3 {
                    file[segment.start + 2 + 2 * component] ^= 1;
                }
                return file;
            }
            _ => {}
        }
        at = segment.end;
    }
}

#[test]
fn tables_of_any_numbers_are_read() {
    for (seed, subsampling) in OF_COLOUR.into_iter().enumerate() {
        for optimise in [false, true] {
            let encoding = Encoding { subsampling, optimise, ..Encoding::default() };
            let file = jpeg_of(Size { width: 301, height: 207 }, seed as u64, encoding);
            let other = crossed(&file);
            assert_ne!(other, file);
            check(&[whole(&other)]);
        }
    }
}

/// Nothing tells their blocks apart, or there are more of them than data.
#[test]
fn files_that_threads_would_not_settle_are_refused() {
    let parse = |file: &[u8]| {
        let accepted = Limits { accept_truncated: true, ..Limits::default() };
        Scan::parse(file, probe(file, &accepted).unwrap().baseline.unwrap())
    };
    assert_eq!(parse(&uniform(640, 480, &[Component::flat(90); 3], None)), None);
    let mut short = jpeg_of(Size { width: 64, height: 64 }, 1, Encoding::default());
    assert!(parse(&short).is_some());
    let frame = short.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    short[frame + 5..frame + 9].copy_from_slice(&[0x1f, 0xff, 0x1f, 0xff]);
    assert_eq!(parse(&short), None);
}

/// What a thread makes of a file: pixels, or its refusal.
fn by_thread(file: &[u8], plan: &ImagePlan) -> Option<Vec<u8>> {
    let mut slot = vec![0; slot_bytes(plan)];
    let meta = probe(file, &Limits::default()).ok()?;
    let limits = Limits::default();
    render_into(Input::Encoded(file), &meta, plan, &limits, &mut slot).ok().map(|_| slot)
}

/// Bytes of the data are changed, cut out and put in: nothing is read or written where it should
/// not be, and what is not left to others is what others make of it.
#[test]
fn damaged_files_are_left_to_others_or_equal_theirs() {
    let mut numbers = Numbers(43);
    let size = Size { width: 131, height: 117 };
    let (mut taken, mut left) = (0, 0);
    for round in 0..1500 {
        let subsampling = OF_COLOUR[round % OF_COLOUR.len()];
        let quality = [20, 85, 100][round % 3];
        let encoding = Encoding { subsampling, quality, ..Encoding::default() };
        let mut file = jpeg_of(size, round as u64, encoding);
        let data = scan_of(&file).unwrap().data();
        let place =
            numbers.range(u32::try_from(data).unwrap(), u32::try_from(file.len() - 3).unwrap());
        let place = place as usize;
        match round % 5 {
            0 => file[place] = u8::try_from(numbers.range(0, 255)).unwrap(),
            1 => file[place] ^= 1 << numbers.range(0, 7),
            2 => drop(file.drain(place..(place + 7).min(file.len() - 2))),
            3 => drop(file.splice(place..place, [0xff, 0xd0 + u8::try_from(round % 8).unwrap()])),
            _ => drop(file.splice(place..place, [0xff, 0xff, 0x00])),
        }
        if probe(&file, &Limits::default()).ok().and_then(|meta| meta.baseline).is_none() {
            continue;
        }
        for region in [Region::whole(size), random_region(&mut numbers, size)] {
            let plan = copy_plan(region);
            match decode(&[(&file, plan.clone())], round % 2 == 0).remove(0) {
                Some(slot) => {
                    taken += 1;
                    assert!(by_thread(&file, &plan) == Some(slot), "round {round} {region:?}");
                }
                None => left += 1,
            }
        }
    }
    assert!(taken > 500 && left > 500, "{taken} taken, {left} left");
}

#[test]
fn headers_of_other_files_are_refused() {
    let size = Size { width: 64, height: 64 };
    let file = |encoding| jpeg_of(size, 1, encoding);
    assert!(scan_of(&file(Encoding::default())).is_some());
    let whole = file(Encoding::default());
    let kind = probe(&whole, &Limits::default()).unwrap().baseline.unwrap();
    let others = [
        Encoding { progressive: true, ..Encoding::default() },
        Encoding { arithmetic: true, ..Encoding::default() },
        Encoding { restart_rows: 1, ..Encoding::default() },
        Encoding { subsampling: tj::TJSAMP_TJSAMP_GRAY, ..Encoding::default() },
    ];
    for encoding in others {
        assert_eq!(Scan::parse(&file(encoding), kind), None, "{encoding:?}");
    }
    for end in 0..scan_of(&whole).unwrap().data() {
        assert_eq!(Scan::parse(&whole[..end], kind), None, "{end} bytes");
        assert!(!Scan::is_plain(&whole[..end], kind), "{end} bytes");
    }
    // What the JPEG engines are for, and what they would take though libjpeg does not.
    let restarts = file(Encoding { restart_rows: 1, ..Encoding::default() });
    assert!(Scan::is_plain(&restarts, kind));
    let scan = whole.windows(2).position(|pair| pair == [0xff, 0xda]).unwrap();
    let mut wrong = whole.clone();
    wrong[scan + 3] = 0x4c;
    assert!(!Scan::is_plain(&wrong, kind), "a scan header of another length");
}
