//! Mixing the images of a batch with each other, in their slots: torchvision's `MixUp` and `CutMix`.
//!
//! Every image meets the one before it, and the first one the last, as all were before. From the
//! last one back each is done when nobody needs it any more, so that only the last one's elements
//! are kept aside, a block at a time.

use crate::Error;
use forebay_core::{Blend, DType, FieldSpec, Layout, Mix, Region};
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};
use half::{bf16, f16};
use std::ops::Range;

/// Elements that are mixed at a time: with their partners' they stay in the first cache.
const BLOCK: usize = 1024;

/// Does `mixes` in order to the slots of one field.
pub(crate) fn mix(slots: &mut [&mut [u8]], spec: &FieldSpec, mixes: &[Mix]) -> Result<(), Error> {
    for mix in mixes {
        match mix {
            Mix::Blend(weights) => blend(slots, spec.dtype, *weights)?,
            Mix::Paste(region) => paste(slots, spec, *region)?,
        }
    }
    Ok(())
}

/// Calls `with` for this part of each slot and of the one before it.
fn ring(slots: &mut [&mut [u8]], part: Range<usize>, mut with: impl FnMut(&mut [u8], &[u8])) {
    let Some(last) = slots.last().map(|last| last[part.clone()].to_vec()) else { return };
    for number in (1..slots.len()).rev() {
        let [other, slot] = &mut slots[number - 1..=number] else { unreachable!("two of them") };
        with(&mut slot[part.clone()], &other[part.clone()]);
    }
    with(&mut slots[0][part], &last);
}

fn blend(slots: &mut [&mut [u8]], dtype: DType, weights: Blend) -> Result<(), Error> {
    let one = match dtype {
        DType::Float32 => floats,
        DType::Float16 => halves::<f16>,
        DType::BFloat16 => halves::<bf16>,
        _ => return Err(Error::internal("a blend of integers")),
    };
    let item = slots.first().map_or(0, |slot| slot.len());
    for start in (0..item).step_by(BLOCK * dtype.size()) {
        let part = start..item.min(start + BLOCK * dtype.size());
        ring(slots, part, |slot, other| one(slot, other, weights));
    }
    Ok(())
}

fn floats(slot: &mut [u8], other: &[u8], weights: Blend) {
    for (own, other) in slot.as_chunks_mut().0.iter_mut().zip(other.as_chunks().0) {
        let (image, other) = (f32::from_ne_bytes(*own), f32::from_ne_bytes(*other));
        *own = (other * weights.other + image * weights.image).to_ne_bytes();
    }
}

/// A float of 16 bits.
trait Half {
    fn widen(bits: &[u16], wide: &mut [f32]);
    fn narrow(wide: &[f32], bits: &mut [u16]);
}

impl Half for f16 {
    fn widen(bits: &[u16], wide: &mut [f32]) {
        bits.reinterpret_cast::<Self>().convert_to_f32_slice(wide);
    }

    fn narrow(wide: &[f32], bits: &mut [u16]) {
        bits.reinterpret_cast_mut::<Self>().convert_from_f32_slice(wide);
    }
}

impl Half for bf16 {
    fn widen(bits: &[u16], wide: &mut [f32]) {
        bits.reinterpret_cast::<Self>().convert_to_f32_slice(wide);
    }

    fn narrow(wide: &[f32], bits: &mut [u16]) {
        bits.reinterpret_cast_mut::<Self>().convert_from_f32_slice(wide);
    }
}

/// As torch does on tensors of such elements: in float32, rounded after each operation.
fn halves<T: Half>(slot: &mut [u8], other: &[u8], weights: Blend) {
    let count = slot.len() / 2;
    let (mut bits, mut wide, mut sum) = ([0; BLOCK], [0.0; BLOCK], [0.0; BLOCK]);
    let (bits, wide, sum) = (&mut bits[..count], &mut wide[..count], &mut sum[..count]);
    for (source, weight) in [(other, weights.other), (&*slot, weights.image)] {
        for (bits, bytes) in bits.iter_mut().zip(source.as_chunks().0) {
            *bits = u16::from_ne_bytes(*bytes);
        }
        T::widen(bits, wide);
        for value in wide.iter_mut() {
            *value *= weight;
        }
        T::narrow(wide, bits);
        T::widen(bits, wide);
        for (sum, product) in sum.iter_mut().zip(&*wide) {
            *sum += product;
        }
    }
    T::narrow(sum, bits);
    for (bytes, bits) in slot.as_chunks_mut().0.iter_mut().zip(bits) {
        *bytes = bits.to_ne_bytes();
    }
}

fn paste(slots: &mut [&mut [u8]], spec: &FieldSpec, region: Region) -> Result<(), Error> {
    let [channels, height, width] = spec.shape[..] else {
        return Err(Error::internal("a mix of what are no images"));
    };
    let Region { x, y, width: columns, height: rows } = region;
    let [x, y, columns, rows] = [x, y, columns, rows].map(|side| side as usize);
    // Runs of a row that lie together, one for each plane.
    let (planes, per_pixel) = match spec.layout {
        Layout::Contiguous => (channels, spec.dtype.size()),
        Layout::ChannelsLast => (1, channels * spec.dtype.size()),
    };
    for (plane, row) in (0..planes).flat_map(|plane| (y..y + rows).map(move |row| (plane, row))) {
        let start = ((plane * height + row) * width + x) * per_pixel;
        ring(slots, start..start + columns * per_pixel, <[u8]>::copy_from_slice);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(dtype: DType, layout: Layout) -> FieldSpec {
        FieldSpec {
            path: "image".to_owned(),
            dtype,
            shape: vec![3, 37, 41],
            ragged: false,
            layout,
            on_device: false,
        }
    }

    fn mixed(images: &[Vec<u8>], spec: &FieldSpec, mixes: &[Mix]) -> Vec<Vec<u8>> {
        let mut images = images.to_vec();
        let mut slots: Vec<&mut [u8]> = images.iter_mut().map(Vec::as_mut_slice).collect();
        mix(&mut slots, spec, mixes).expect("it can be done");
        images
    }

    /// Every image with the one before it, by `with` of place and elements.
    fn expected(
        images: &[Vec<u8>],
        size: usize,
        with: impl Fn(usize, &[u8], &[u8]) -> Vec<u8>,
    ) -> Vec<Vec<u8>> {
        let before = |number: usize| &images[(number + images.len() - 1) % images.len()];
        let one = |(number, image): (usize, &Vec<u8>)| {
            let elements = image.chunks(size).zip(before(number).chunks(size)).enumerate();
            elements.flat_map(|(place, (own, other))| with(place, own, other)).collect()
        };
        images.iter().enumerate().map(one).collect()
    }

    fn images(count: usize, bytes: impl Fn(u32) -> Vec<u8>) -> Vec<Vec<u8>> {
        let image = |number: u32| {
            let state = |place: u32| (number * 9_000 + place).wrapping_mul(2_654_435_761) >> 7;
            (0..3 * 37 * 41).flat_map(|place| bytes(state(place))).collect()
        };
        (0..u32::try_from(count).expect("some")).map(image).collect()
    }

    #[test]
    fn blends_round_after_each_operation() {
        let weights = Blend::new(0.3);
        let value = |state: u32| (state % 1_000) as f32 / 250.0 - 2.0;
        for count in [0, 1, 2, 5] {
            let all = images(count, |state| value(state).to_ne_bytes().to_vec());
            let blend = |_: usize, own: &[u8], other: &[u8]| {
                let [own, other] =
                    [own, other].map(|of| f32::from_ne_bytes(of.try_into().unwrap()));
                (other * weights.other + own * weights.image).to_ne_bytes().to_vec()
            };
            let spec = spec(DType::Float32, Layout::Contiguous);
            assert_eq!(mixed(&all, &spec, &[Mix::Blend(weights)]), expected(&all, 4, blend));
            let twice = expected(&expected(&all, 4, blend), 4, blend);
            assert_eq!(mixed(&all, &spec, &[Mix::Blend(weights); 2]), twice);
        }
        let all = images(3, |state| f16::from_f32(value(state)).to_ne_bytes().to_vec());
        let blend = |_: usize, own: &[u8], other: &[u8]| {
            let [own, other] =
                [own, other].map(|of| f16::from_ne_bytes(of.try_into().unwrap()).to_f32());
            let [own, other] =
                [own * weights.image, other * weights.other].map(|of| f16::from_f32(of).to_f32());
            f16::from_f32(own + other).to_ne_bytes().to_vec()
        };
        let got = mixed(&all, &spec(DType::Float16, Layout::ChannelsLast), &[Mix::Blend(weights)]);
        assert_eq!(got, expected(&all, 2, blend));
        let all = images(3, |state| bf16::from_f32(value(state)).to_ne_bytes().to_vec());
        let blend = |_: usize, own: &[u8], other: &[u8]| {
            let [own, other] =
                [own, other].map(|of| bf16::from_ne_bytes(of.try_into().unwrap()).to_f32());
            let [own, other] =
                [own * weights.image, other * weights.other].map(|of| bf16::from_f32(of).to_f32());
            bf16::from_f32(own + other).to_ne_bytes().to_vec()
        };
        let got = mixed(&all, &spec(DType::BFloat16, Layout::Contiguous), &[Mix::Blend(weights)]);
        assert_eq!(got, expected(&all, 2, blend));
    }

    #[test]
    fn pastes_take_the_region_and_nothing_else() {
        let whole = Region { x: 0, y: 0, width: 41, height: 37 };
        let inner = Region { x: 5, y: 30, width: 11, height: 7 };
        let none = Region { x: 41, y: 3, width: 0, height: 4 };
        for region in [whole, inner, none] {
            for (layout, dtype) in [
                (Layout::Contiguous, DType::UInt8),
                (Layout::ChannelsLast, DType::UInt8),
                (Layout::Contiguous, DType::Float32),
                (Layout::ChannelsLast, DType::Float16),
            ] {
                let size = dtype.size();
                let all = images(4, |state| state.to_ne_bytes()[..size].to_vec());
                let take = |place: usize, own: &[u8], other: &[u8]| {
                    let pixel =
                        if layout == Layout::Contiguous { place % (37 * 41) } else { place / 3 };
                    let (x, y) =
                        (u32::try_from(pixel % 41).unwrap(), u32::try_from(pixel / 41).unwrap());
                    let inside = (region.x..region.x + region.width).contains(&x)
                        && (region.y..region.y + region.height).contains(&y);
                    if inside { other.to_vec() } else { own.to_vec() }
                };
                let got = mixed(&all, &spec(dtype, layout), &[Mix::Paste(region)]);
                assert_eq!(got, expected(&all, size, take), "{region:?} {layout:?} {dtype:?}");
            }
        }
    }
}
