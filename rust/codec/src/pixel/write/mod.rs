//! Rows of 8-bit pixels into the slot's element type and layout.
//!
//! Invariant: every element is `Write::value` of its pixel, bit for bit; 16-bit floats are rounded
//! to nearest even from it.

mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::Level;
use crate::simd::Kind;
use forebay_core::noise::{normal_quantiles, quantiles_of};
use forebay_core::{DType, Erase, Fill, Layout, Normalize, Size, Write};

/// Elements of all 256 pixel values, per channel, in native byte order.
type Table<const B: usize> = [[[u8; B]; 256]; 3];

/// A [`Write`] prepared for many rows.
#[derive(Debug)]
pub struct Writer {
    write: Write,
    table: Elements,
    arithmetic: Option<Arithmetic>,
}

#[derive(Debug)]
enum Elements {
    /// The pixels as they are.
    Raw,
    Half(Box<Table<2>>),
    Single(Box<Table<4>>),
}

/// Constants of a formula that gives every element of the table exactly, in five operations:
/// faster than 8 look-ups or a division (see `avx2.rs`).
#[derive(Debug, Clone, Copy)]
struct Arithmetic {
    factor: f32,
    mean: [f32; 3],
    std: [f32; 3],
    inverse_std: [f32; 3],
}

impl Arithmetic {
    /// The formula for `write`, if it gives all 768 elements bit for bit.
    fn find(write: &Write) -> Option<Self> {
        let Normalize { mean, std } =
            write.normalize.unwrap_or(Normalize { mean: [0.0; 3], std: [1.0; 3] });
        let factor = if write.scale { 1.0 / 255.0 } else { 1.0 };
        let formula = Self { factor, mean, std, inverse_std: std.map(|std| 1.0 / std) };
        formula.is_exact(write).then_some(formula)
    }

    fn is_exact(&self, write: &Write) -> bool {
        (0..3).all(|channel| {
            (0..=255).all(|pixel| {
                self.value(pixel, channel).to_bits() == write.value(pixel, channel).to_bits()
            })
        })
    }

    /// What the SIMD leaves compute, operation by operation: the division is a multiplication by
    /// the inverse with one Newton correction.
    fn value(&self, pixel: u8, channel: usize) -> f32 {
        let centred = f32::from(pixel) * self.factor - self.mean[channel];
        let quotient = centred * self.inverse_std[channel];
        let rest = (-quotient).mul_add(self.std[channel], centred);
        rest.mul_add(self.inverse_std[channel], quotient)
    }
}

impl Writer {
    /// Builds the tables (some 20 microseconds); `None` for element types that no image has.
    pub fn new(write: &Write) -> Option<Self> {
        let mut arithmetic = None;
        let table = match write.dtype {
            DType::UInt8 => Elements::Raw,
            DType::Float16 => Elements::Half(Box::new(table(write, |value| {
                half::f16::from_f32(value).to_bits().to_ne_bytes()
            }))),
            DType::BFloat16 => Elements::Half(Box::new(table(write, |value| {
                half::bf16::from_f32(value).to_bits().to_ne_bytes()
            }))),
            DType::Float32 => {
                arithmetic = Arithmetic::find(write);
                Elements::Single(Box::new(table(write, f32::to_ne_bytes)))
            }
            DType::Bool | DType::Int64 | DType::Float64 => return None,
        };
        Some(Self { write: *write, table, arithmetic })
    }

    /// What it was made for.
    pub fn write(&self) -> &Write {
        &self.write
    }

    /// Writes row `y` of an image of `size`: `size.width` pixels of `write.channels` channels.
    ///
    /// # Panics
    /// The row or the slot has another length than `size` and the element type ask for.
    pub fn row(&self, level: Level, y: usize, size: Size, row: &[u8], slot: &mut [u8]) {
        let channels = self.write.channels.count();
        let (width, height) = (size.width as usize, size.height as usize);
        let line = width * self.write.dtype.size();
        assert_eq!(row.len(), width * channels, "one pixel per column");
        assert_eq!(slot.len(), line * height * channels, "the slot holds one image");
        match (self.write.layout, channels) {
            (Layout::Contiguous, 3) => {
                let (first, rest) = slot.split_at_mut(line * height);
                let (second, third) = rest.split_at_mut(line * height);
                let planes =
                    [first, second, third].map(|plane| &mut plane[y * line..(y + 1) * line]);
                self.planes(level, row, planes);
            }
            (Layout::ChannelsLast, 3) => {
                self.interleaved(level, row, &mut slot[y * line * 3..(y + 1) * line * 3]);
            }
            _ => {
                let out = &mut slot[y * line..(y + 1) * line];
                match &self.table {
                    Elements::Raw => out.copy_from_slice(row),
                    Elements::Half(table) => scalar::channel(row.iter(), &table[0], out),
                    Elements::Single(table) => scalar::channel(row.iter(), &table[0], out),
                }
            }
        }
    }

    /// Overwrites a part of an image of `size`.
    ///
    /// # Panics
    /// The part does not lie in the image, or the slot has another length.
    pub fn erase(&self, erase: &Erase, size: Size, slot: &mut [u8]) {
        let element: fn(f32) -> [u8; 4] = match self.write.dtype {
            DType::Float16 => |value| padded(half::f16::from_f32(value).to_bits().to_ne_bytes()),
            DType::BFloat16 => |value| padded(half::bf16::from_f32(value).to_bits().to_ne_bytes()),
            DType::Float32 => f32::to_ne_bytes,
            _ => |value| padded([byte(value)]),
        };
        let (bytes, channels) = (self.write.dtype.size(), self.write.channels.count());
        let (width, height) = (size.width as usize, size.height as usize);
        let region = erase.region;
        let quantiles = normal_quantiles();
        let mut same = [[0; 4]; 3];
        if let Fill::Value(value) = erase.fill {
            same = value.map(element);
        }
        let (rows, columns) =
            (region.y..region.y + region.height, region.x..region.x + region.width);
        let pixels = rows.flat_map(|y| columns.clone().map(move |x| (x as usize, y as usize)));
        for (pixel, (x, y)) in (0..).zip(pixels) {
            let elements = match erase.fill {
                Fill::Value(_) => same,
                Fill::Noise { key, normalize } => {
                    let places = quantiles_of(key, pixel);
                    [0, 1, 2].map(|channel| {
                        let quantile = quantiles[places[channel]];
                        element(Fill::noise(&self.write, normalize, quantile, channel))
                    })
                }
            };
            for (channel, element) in elements[..channels].iter().enumerate() {
                let place = match self.write.layout {
                    Layout::Contiguous => (channel * height + y) * width + x,
                    Layout::ChannelsLast => (y * width + x) * channels + channel,
                };
                slot[place * bytes..][..bytes].copy_from_slice(&element[..bytes]);
            }
        }
    }

    fn planes(&self, level: Level, row: &[u8], planes: [&mut [u8]; 3]) {
        match (level.kind(), &self.table, &self.arithmetic) {
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx2 | Kind::Avx512, Elements::Raw, _) => {
                // SAFETY: the level is `Avx2` only where the CPU has it.
                unsafe { avx2::planes_raw(row, planes) }
            }
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx2 | Kind::Avx512, Elements::Single(table), Some(formula)) => {
                // SAFETY: as above.
                unsafe { avx2::planes_single(row, formula, table, planes) }
            }
            (_, Elements::Raw, _) => scalar::planes_raw(row, planes),
            (_, Elements::Half(table), _) => scalar::planes(row, table, planes),
            (_, Elements::Single(table), _) => scalar::planes(row, table, planes),
        }
    }

    fn interleaved(&self, level: Level, row: &[u8], out: &mut [u8]) {
        match (level.kind(), &self.table, &self.arithmetic) {
            #[cfg(target_arch = "x86_64")]
            (Kind::Avx2 | Kind::Avx512, Elements::Single(table), Some(formula)) => {
                // SAFETY: the level is `Avx2` only where the CPU has it.
                unsafe { avx2::interleaved_single(row, formula, table, out) }
            }
            (_, Elements::Raw, _) => out.copy_from_slice(row),
            (_, Elements::Half(table), _) => scalar::interleaved(row, table, out),
            (_, Elements::Single(table), _) => scalar::interleaved(row, table, out),
        }
    }
}

fn padded<const B: usize>(bytes: [u8; B]) -> [u8; 4] {
    let mut all = [0; 4];
    all[..B].copy_from_slice(&bytes);
    all
}

/// Whole numbers from 0 to 255 stay as they are.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
fn byte(value: f32) -> u8 {
    value as u8
}

fn table<const B: usize>(write: &Write, element: impl Fn(f32) -> [u8; B]) -> Table<B> {
    let mut table = [[[0; B]; 256]; 3];
    for (channel, elements) in table.iter_mut().enumerate() {
        for (pixel, place) in (0..=255).zip(elements) {
            *place = element(write.value(pixel, channel));
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_core::Channels;

    fn write(normalize: Option<Normalize>) -> Write {
        Write {
            channels: Channels::Rgb,
            dtype: DType::Float32,
            layout: Layout::Contiguous,
            scale: true,
            normalize,
        }
    }

    #[test]
    fn common_normalisations_have_an_exact_formula() {
        let imagenet = Normalize { mean: [0.485, 0.456, 0.406], std: [0.229, 0.224, 0.225] };
        assert!(Arithmetic::find(&write(Some(imagenet))).is_some());
        let half = Normalize { mean: [0.5; 3], std: [0.5; 3] };
        assert!(Arithmetic::find(&write(Some(half))).is_some());
        assert!(Arithmetic::find(&write(None)).is_some());
    }

    #[test]
    fn inexact_formulas_are_refused() {
        let odd = Normalize { mean: [0.5; 3], std: [0.0; 3] };
        assert!(Arithmetic::find(&write(Some(odd))).is_none());
    }
}
