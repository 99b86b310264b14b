//! PIX-3 for `MixUp` and `CutMix`: the kernel's slots are the CPU's, byte for byte.
#![allow(clippy::unwrap_used, reason = "a failed unwrap fails the test")]

use forebay_codec::CpuBackend;
use forebay_core::ports::{Renderer, Slot, SlotMemory};
use forebay_core::{Blend, DType, FieldSpec, Layout, Limits, Mix, Region};
use forebay_cuda::pack::{Error, pack_mix};
use forebay_kernel_tests::{mix, narrowed, widened};
use half::{bf16, f16};

const SHAPE: [usize; 3] = [3, 19, 23];

fn spec(dtype: DType, layout: Layout) -> FieldSpec {
    let (path, shape) = ("image".to_owned(), SHAPE.to_vec());
    FieldSpec { path, dtype, shape, ragged: false, layout, on_device: true }
}

#[derive(Debug)]
struct Held(Vec<u8>);

impl Slot for Held {
    fn memory(&mut self) -> SlotMemory<'_> {
        SlotMemory::Host(&mut self.0)
    }
}

/// Elements of a slot: normalised pixels, or bytes.
fn elements(dtype: DType, slot: usize) -> Vec<u8> {
    let state = |place: usize| {
        u32::try_from(slot * 7_919 + place + 1).unwrap().wrapping_mul(2_654_435_761) >> 9
    };
    let value = |place: usize| (state(place) % 4_001) as f32 / 800.0 - 2.4;
    let element = |place: usize| match dtype {
        DType::Float32 => value(place).to_ne_bytes().to_vec(),
        DType::Float16 => f16::from_f32(value(place)).to_ne_bytes().to_vec(),
        DType::BFloat16 => bf16::from_f32(value(place)).to_ne_bytes().to_vec(),
        _ => vec![state(place).to_ne_bytes()[0]],
    };
    (0..SHAPE.iter().product()).flat_map(element).collect()
}

/// A batch of `slots` by the kernel and by the CPU; those that are `taken` are mixed.
fn check(dtype: DType, layout: Layout, slots: usize, taken: &[usize], how: &Mix) {
    let spec = spec(dtype, layout);
    let item = elements(dtype, 0).len();
    let before: Vec<u8> = (0..slots).flat_map(|slot| elements(dtype, slot)).collect();
    // Words, so that elements lie where they can.
    let mut words = vec![0_u64; before.len().div_ceil(8)];
    let bytes = |words: &[u64]| -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).take(before.len()).collect()
    };
    for (word, chunk) in words.iter_mut().zip(before.chunks(8)) {
        let mut all = [0; 8];
        all[..chunk.len()].copy_from_slice(chunk);
        *word = u64::from_ne_bytes(all);
    }
    let packed = pack_mix(words.as_mut_ptr() as u64, taken, &spec, how).unwrap();
    if let Some(packed) = packed {
        // SAFETY: the words hold all slots.
        unsafe { mix(&packed) };
    }
    let held = |slot: &usize| Box::new(Held(elements(dtype, *slot))) as Box<dyn Slot>;
    let mut cpu: Vec<Box<dyn Slot>> = taken.iter().map(held).collect();
    CpuBackend::new(Limits::default()).mix(&mut cpu, &spec, &[*how]).unwrap();
    let mut expected = before.clone();
    for (slot, held) in taken.iter().zip(&mut cpu) {
        let SlotMemory::Host(memory) = held.memory() else { unreachable!("host slots") };
        expected[slot * item..][..item].copy_from_slice(memory);
    }
    assert!(bytes(&words) == expected, "{dtype:?} {layout:?} {taken:?} {how:?}");
}

#[test]
fn mixes_are_the_cpus() {
    let region = |x, y, width, height| Mix::Paste(Region { x, y, width, height });
    let pastes =
        [region(0, 0, 23, 19), region(3, 2, 9, 11), region(22, 18, 1, 1), region(5, 0, 0, 7)];
    let blends = [0.0, 0.3, 0.5, 0.9999, 1.0].map(|weight| Mix::Blend(Blend::new(weight)));
    let all: Vec<usize> = (0..40).collect();
    let taken: [&[usize]; 5] = [&all, &[0], &[39], &[1, 2, 31, 32, 33, 38], &[]];
    for layout in [Layout::Contiguous, Layout::ChannelsLast] {
        for dtype in [DType::Float32, DType::Float16, DType::BFloat16, DType::UInt8] {
            let blends = if dtype == DType::UInt8 { &[][..] } else { &blends };
            for how in pastes.iter().chain(blends) {
                for taken in taken {
                    check(dtype, layout, 40, taken, how);
                }
            }
        }
    }
}

#[test]
fn floats_of_16_bits_are_converted_exactly() {
    for bits in 0..=u16::MAX {
        let half = f16::from_bits(bits);
        if half.is_nan() {
            assert!(widened(bits).is_nan());
        } else {
            assert_eq!(widened(bits).to_bits(), half.to_f32().to_bits(), "{bits:#x}");
            assert_eq!(narrowed(half.to_f32())[0], bits);
        }
    }
    // Every exponent, and last bits around all ties.
    for high in 0..=u16::MAX {
        for low in [0, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff] {
            let value = f32::from_bits(u32::from(high) << 16 | low);
            let [half, brain] = narrowed(value);
            if value.is_nan() {
                assert!(f16::from_bits(half).is_nan() && bf16::from_bits(brain).is_nan());
                continue;
            }
            assert_eq!(half, f16::from_f32(value).to_bits(), "{value:e}");
            assert_eq!(brain, bf16::from_f32(value).to_bits(), "{value:e}");
        }
    }
}

#[test]
fn what_cannot_be_mixed_is_refused() {
    let blend = Mix::Blend(Blend::new(0.5));
    let refused = |taken: &[usize], dtype, how: &Mix| {
        pack_mix(4096, taken, &spec(dtype, Layout::Contiguous), how).unwrap_err()
    };
    assert!(matches!(refused(&[0, 28_672], DType::Float32, &blend), Error::MixedSlots { .. }));
    assert!(matches!(refused(&[0], DType::UInt8, &blend), Error::Elements { .. }));
    let outside = Mix::Paste(Region { x: 20, y: 0, width: 4, height: 1 });
    assert!(matches!(refused(&[0], DType::UInt8, &outside), Error::Erase { .. }));
    assert!(
        pack_mix(4096, &[], &spec(DType::Float32, Layout::Contiguous), &blend).unwrap().is_none()
    );
}
