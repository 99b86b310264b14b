//! PIX-1 from coefficients: what threads leave to the renderer becomes libjpeg-turbo's pixels, byte
//! for byte.

#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

#[path = "../../../rust/codec/tests/common/mod.rs"]
mod codec;
mod common;

use codec::{
    Encoding, Numbers, OF_COLOUR, copy_plan, decode_by_port, jpeg, jpeg_of, random_region,
};
use common::{oracle, slot_bytes};
use forebay_codec::{CpuBackend, PixelDecoder, Pixels as Input};
use forebay_core::ports::{Fault, HostBuffer, HostCoefficients, HostMemory, Pixels};
use forebay_core::{Channels, ImagePlan, Limits, Region, Size};
use forebay_cuda::pack::{Laid, RenderItem, lay_out, pack};
use forebay_kernel_tests::run;
use std::sync::Arc;
use turbojpeg_sys as tj;

/// Lends heap memory full of rubbish.
struct Heap;

impl HostMemory for Heap {
    fn take(&self, bytes: usize) -> Result<Box<dyn HostBuffer>, Fault> {
        Ok(Box::new(vec![0xDD; bytes]))
    }
}

fn decode(file: &[u8], region: Region) -> Pixels {
    let cpu = CpuBackend::new(Limits::default());
    let decoder = PixelDecoder::new(cpu, Arc::new(Heap)).leaving_coefficients();
    decode_by_port(&decoder, file, region, Channels::Rgb).unwrap()
}

fn coefficients(file: &[u8], region: Region) -> HostCoefficients {
    match decode(file, region) {
        Pixels::Coefficients(coefficients) => coefficients,
        other => panic!("expected coefficients, got {other:?}"),
    }
}

/// Renders every plan from coefficients, all in one batch, and compares with the CPU.
fn check(file: &[u8], size: Size, plans: &[ImagePlan]) {
    let given: Vec<HostCoefficients> =
        plans.iter().map(|plan| coefficients(file, plan.region)).collect();
    let lay = |of: &HostCoefficients, samples: u64| {
        lay_out(of.size, &of.components, of.memory.bytes().as_ptr() as u64, samples)
    };
    let mut planes: Vec<Vec<u64>> =
        given.iter().map(|of| vec![!0; lay(of, 0).bytes.div_ceil(8)]).collect();
    let laid: Vec<Laid> = given
        .iter()
        .zip(&mut planes)
        .map(|(of, planes)| lay(of, planes.as_mut_ptr() as u64))
        .collect();
    let mut slots: Vec<Vec<u8>> = plans.iter().map(|plan| vec![0; slot_bytes(plan)]).collect();
    let items: Vec<RenderItem<'_>> = laid
        .iter()
        .zip(plans)
        .zip(&mut slots)
        .map(|((laid, plan), slot)| RenderItem {
            source: laid.source,
            plan,
            slot: slot.as_mut_ptr() as u64,
            slot_bytes: slot.len(),
        })
        .collect();
    let blocks: Vec<_> = laid.iter().flat_map(|laid| laid.blocks).collect();
    let packed = pack(&items, &blocks);
    assert_eq!(packed.refused, []);
    // SAFETY: coefficients, planes and slots are live memory, each of its own.
    unsafe { run(&packed) };
    for (plan, slot) in plans.iter().zip(slots) {
        assert!(slot == oracle(Input::Encoded(file), size, plan), "{size} {plan:?}");
    }
}

#[test]
fn every_size_equals_libjpeg() {
    let mut numbers = Numbers(31);
    for subsampling in OF_COLOUR {
        for width in 1..=40 {
            for height in [1, 2, 3, 41 - width, numbers.range(4, 40)] {
                let size = Size { width, height };
                let encoding = Encoding { subsampling, ..Encoding::default() };
                let file = jpeg_of(size, u64::from(width), encoding);
                let regions = [Region::whole(size), random_region(&mut numbers, size)];
                check(&file, size, &regions.map(copy_plan));
            }
        }
    }
}

#[test]
fn regions_equal_libjpeg() {
    let mut numbers = Numbers(32);
    let size = Size { width: 133, height: 97 };
    for subsampling in OF_COLOUR {
        for quality in [30, 75, 100] {
            let encoding = Encoding { subsampling, quality, ..Encoding::default() };
            let file = jpeg_of(size, 7, encoding);
            let plans: Vec<ImagePlan> =
                (0..30).map(|_| copy_plan(random_region(&mut numbers, size))).collect();
            check(&file, size, &plans);
        }
    }
}

/// Noise between black and white at the best quality: the largest coefficients that there are.
#[test]
fn the_strongest_contrasts_equal_libjpeg() {
    let mut numbers = Numbers(33);
    let size = Size { width: 64, height: 48 };
    for quality in [1, 10, 100] {
        let values = (0..size.pixels() * 3).map(|_| if numbers.one_in(2) { 255 } else { 0 });
        let pixels: Vec<u8> = values.collect();
        let subsampling = tj::TJSAMP_TJSAMP_444;
        let file = jpeg(size, &pixels, Encoding { subsampling, quality, ..Encoding::default() });
        check(&file, size, &[copy_plan(Region::whole(size))]);
    }
}

/// No encoder writes such steps, but a file may hold them: sums leave 16 bits, where SIMD wraps or
/// is cut off.
#[test]
fn wrong_quantisation_equals_libjpeg() {
    let size = Size { width: 48, height: 40 };
    let subsampling = tj::TJSAMP_TJSAMP_444;
    let encoding = Encoding { subsampling, quality: 100, ..Encoding::default() };
    let mut numbers = Numbers(34);
    for value in [0, 60, 200, 255] {
        let flat = vec![value; 3 * size.width as usize * size.height as usize];
        let noise: Vec<u8> = flat.iter().map(|_| if numbers.one_in(2) { 255 } else { 0 }).collect();
        for pixels in [flat, noise] {
            let file = jpeg(size, &pixels, encoding);
            let table = file.windows(2).position(|pair| pair == [0xff, 0xdb]).unwrap() + 5;
            for (place, step) in [(0, 9), (0, 40), (0, 255), (5, 255), (63, 255)] {
                let mut file = file.clone();
                file[table + place] = step;
                check(&file, size, &[copy_plan(Region::whole(size))]);
            }
        }
    }
}

#[test]
fn what_is_not_clean_is_decoded_to_pixels() {
    let size = Size { width: 64, height: 64 };
    let region = Region::whole(size);
    let file = jpeg_of(size, 1, Encoding::default());
    assert!(matches!(decode(&file, region), Pixels::Coefficients(_)));
    let progressive = jpeg_of(size, 1, Encoding { progressive: true, ..Encoding::default() });
    assert!(matches!(decode(&progressive, region), Pixels::Host(_)));
    let gray = Encoding { subsampling: tj::TJSAMP_TJSAMP_GRAY, ..Encoding::default() };
    assert!(matches!(decode(&jpeg_of(size, 1, gray), region), Pixels::Host(_)));
}
