//! Tables that stretch a channel by how often it has each value.

use super::scalar::truncate;
use std::num::NonZeroU32;

/// Counts of 256 values.
pub(super) type Counts = [u32; 256];

/// `autocontrast_image` of torchvision.transforms.v2.functional on uint8: the values that occur are
/// stretched to 0..=255.
pub(super) fn autocontrast(counts: &Counts) -> [u8; 256] {
    let mut table = std::array::from_fn(pixel);
    let least = counts.iter().position(|&count| count > 0).unwrap_or(0);
    let most = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    if least < most {
        let [least, most] = [least, most].map(|value| f32::from(pixel(value)));
        let scale = (most - least) * (1.0 / 255.0);
        for (value, place) in (0..=255_u8).zip(&mut table) {
            *place = truncate((f32::from(value) - least) / scale);
        }
    }
    table
}

/// `equalize_image`, which is Pillow's: values are spread by how many pixels have less.
pub(super) fn equalize(counts: &Counts) -> [u8; 256] {
    let mut table = std::array::from_fn(pixel);
    let all: u32 = counts.iter().sum();
    let most = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
    if let Some(step) = NonZeroU32::new((all - counts[most]) / 255) {
        let mut below = 0;
        for (count, place) in counts.iter().zip(&mut table) {
            *place = u8::try_from((below + step.get() / 2) / step).unwrap_or(u8::MAX);
            below += count;
        }
        table[0] = 0;
    }
    table
}

fn pixel(value: usize) -> u8 {
    u8::try_from(value).unwrap_or(u8::MAX)
}
