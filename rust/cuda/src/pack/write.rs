//! Tables of the elements that 8-bit values become.
//!
//! Invariant: every element is `Write::value` of its pixel, bit for bit, or the pixel itself in
//! uint8; 16-bit floats are rounded to nearest even from it, as on the CPU.

use super::blob::Blob;
use forebay_core::noise::normal_quantiles;
use forebay_core::{Channels, DType, Fill, Layout, Write};
use half::{bf16, f16};

/// Whether images can have elements of this type.
pub(super) fn is_element(dtype: DType) -> bool {
    match dtype {
        DType::UInt8 | DType::Float16 | DType::BFloat16 | DType::Float32 => true,
        DType::Bool | DType::Int64 | DType::Float64 => false,
    }
}

/// A value as an element, in the lower bits, rounded as in tables.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
pub(super) fn element(dtype: DType, value: f32) -> u32 {
    match dtype {
        DType::Float16 => f16::from_f32(value).to_bits().into(),
        DType::BFloat16 => bf16::from_f32(value).to_bits().into(),
        DType::Float32 => value.to_bits(),
        DType::UInt8 | DType::Bool | DType::Int64 | DType::Float64 => u32::from(value as u8),
    }
}

/// Appends each table once.
#[derive(Debug, Default)]
pub(super) struct Tables {
    known: Vec<(Write, u64)>,
    noise: Vec<((Write, bool), u64)>,
}

impl Tables {
    /// The offset of the table for `write`, whose element type was checked.
    pub(super) fn offset(&mut self, blob: &mut Blob, write: &Write) -> u64 {
        let write = of_elements(write);
        if let Some((_, offset)) = self.known.iter().find(|(known, _)| *known == write) {
            return *offset;
        }
        let values = (0..3).flat_map(|channel| (0..=255).map(move |pixel| (pixel, channel)));
        let values = values.map(|(pixel, channel)| match write.dtype {
            DType::UInt8 => f32::from(pixel),
            _ => write.value(pixel, channel),
        });
        let offset = append(blob, write.dtype, values);
        self.known.push((write, offset));
        offset
    }

    /// The offset of the elements of noise: of all quantiles, per channel.
    pub(super) fn noise(&mut self, blob: &mut Blob, write: &Write, normalize: bool) -> u64 {
        let kind = (of_elements(write), normalize);
        if let Some((_, offset)) = self.noise.iter().find(|(known, _)| *known == kind) {
            return *offset;
        }
        let values = (0..3).flat_map(|channel| {
            let value = move |&at: &f32| Fill::noise(&kind.0, normalize, at, channel);
            normal_quantiles().iter().map(value)
        });
        let offset = append(blob, write.dtype, values);
        self.noise.push((kind, offset));
        offset
    }
}

/// What of it elements depend on.
fn of_elements(write: &Write) -> Write {
    Write { channels: Channels::Rgb, layout: Layout::Contiguous, ..*write }
}

/// Values as elements.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
fn append(blob: &mut Blob, dtype: DType, values: impl Iterator<Item = f32>) -> u64 {
    match dtype {
        DType::Float16 => {
            blob.append(&values.map(|value| f16::from_f32(value).to_bits()).collect::<Vec<_>>())
        }
        DType::BFloat16 => {
            blob.append(&values.map(|value| bf16::from_f32(value).to_bits()).collect::<Vec<_>>())
        }
        DType::Float32 => blob.append(&values.collect::<Vec<_>>()),
        DType::UInt8 | DType::Bool | DType::Int64 | DType::Float64 => {
            blob.append(&values.map(|value| value as u8).collect::<Vec<_>>())
        }
    }
}
