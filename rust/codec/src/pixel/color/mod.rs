//! Point-wise colour on 8-bit RGB, with the arithmetic of torchvision v2 on uint8 tensors.
//!
//! The order of operations, the fused multiply-adds of ATen's vectorised `add(alpha=)` and the
//! truncations are those of `torchvision/transforms/v2/functional/_color.py` on a CPU tensor.

mod levels;
mod scalar;

#[cfg(target_arch = "x86_64")]
mod avx2;

use crate::Level;
use crate::simd::Kind;
use forebay_core::{Blend, ColorOp};

/// What is known of all pixels of a pass.
#[derive(Debug, Clone, Default)]
pub struct Reduced {
    /// `Reduce::GrayMean`.
    pub gray_mean: f32,
    /// `Reduce::Histogram`: for red, green and blue, or grey and nothing.
    pub histogram: Option<Box<[[u32; 256]; 3]>>,
}

impl Reduced {
    /// Counts the values of pixels of `C` channels.
    pub fn count<const C: usize>(&mut self, pixels: &[u8]) {
        let histogram = self.histogram.insert(Box::new([[0; 256]; 3]));
        for pixel in pixels.as_chunks::<C>().0 {
            for (counts, &value) in histogram.iter_mut().zip(pixel) {
                counts[usize::from(value)] += 1;
            }
        }
    }
}

/// A list of colour operations prepared for many rows.
#[derive(Debug, Default)]
pub struct Program {
    steps: Vec<Step>,
}

/// Operations of one channel at a time are tables.
#[derive(Debug)]
enum Step {
    Table(Box<[u8; 256]>),
    /// One for each channel.
    Tables(Box<[[u8; 256]; 3]>),
    Saturation(Blend),
    Hue(f32),
    Grayscale,
    Permute([u8; 3]),
}

impl Program {
    /// Takes over `ops`; `reduced` is of the previous pass.
    pub fn new(ops: &[ColorOp], reduced: &Reduced) -> Self {
        let gray_mean = reduced.gray_mean;
        let tables = |table: fn(&levels::Counts) -> [u8; 256]| {
            let counts = reduced.histogram.as_deref().unwrap_or(&[[0; 256]; 3]);
            Step::Tables(Box::new(counts.each_ref().map(table)))
        };
        let bytes = |value: &dyn Fn(u8) -> u8| {
            let mut table = Box::new([0; 256]);
            for (pixel, place) in (0..=255_u8).zip(table.iter_mut()) {
                *place = value(pixel);
            }
            Step::Table(table)
        };
        let table =
            |value: &dyn Fn(f32) -> f32| bytes(&|pixel| scalar::truncate(value(f32::from(pixel))));
        let steps = ops.iter().map(|op| match *op {
            ColorOp::Brightness(factor) => table(&|pixel| pixel * factor),
            ColorOp::Contrast(Blend { image, other }) => {
                table(&|pixel| gray_mean.mul_add(other, pixel * image))
            }
            ColorOp::Saturation(blend) => Step::Saturation(blend),
            ColorOp::Hue(turns) => Step::Hue(turns),
            ColorOp::Grayscale => Step::Grayscale,
            ColorOp::Invert => table(&|pixel| 255.0 - pixel),
            ColorOp::Posterize(bits) => bytes(&|pixel| pixel & scalar::upper(bits)),
            ColorOp::Solarize(from) => {
                table(&|pixel| if pixel >= from { 255.0 - pixel } else { pixel })
            }
            ColorOp::Autocontrast => tables(levels::autocontrast),
            ColorOp::Equalize => tables(levels::equalize),
            ColorOp::Permute(channels) => Step::Permute(channels),
        });
        Self { steps: steps.collect() }
    }

    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Changes a row of grey pixels in place.
    ///
    /// # Panics
    /// An operation mixes channels.
    pub fn apply_to_gray(&self, row: &mut [u8]) {
        for step in &self.steps {
            let table = match step {
                Step::Table(table) => table,
                Step::Tables(tables) => &tables[0],
                other => panic!("{other:?} of grey"),
            };
            for value in &mut *row {
                *value = table[usize::from(*value)];
            }
        }
    }

    /// Changes a row of RGB pixels in place.
    pub fn apply(&self, level: Level, row: &mut [u8]) {
        let pixels = row.as_chunks_mut::<3>().0;
        for step in &self.steps {
            match (step, level.kind()) {
                (Step::Table(table), _) => {
                    pixels.as_flattened_mut().iter_mut().for_each(|v| *v = table[usize::from(*v)]);
                }
                (Step::Tables(tables), _) => {
                    for (value, table) in
                        pixels.iter_mut().flat_map(|it| it.iter_mut().zip(&**tables))
                    {
                        *value = table[usize::from(*value)];
                    }
                }
                (Step::Grayscale, _) => scalar::to_gray(pixels),
                (Step::Permute(channels), _) => {
                    let from = channels.map(usize::from);
                    for pixel in pixels.iter_mut() {
                        *pixel = from.map(|from| pixel[from]);
                    }
                }
                (&Step::Saturation(blend), Kind::Scalar) => scalar::saturate(pixels, blend),
                (&Step::Hue(turns), Kind::Scalar) => scalar::turn_hue(pixels, turns),
                #[cfg(target_arch = "x86_64")]
                (&Step::Saturation(blend), Kind::Avx2 | Kind::Avx512) => {
                    // SAFETY: the level is `Avx2` only where the CPU has AVX2 and FMA.
                    unsafe { avx2::saturate(pixels, blend) }
                }
                #[cfg(target_arch = "x86_64")]
                (&Step::Hue(turns), Kind::Avx2 | Kind::Avx512) => {
                    // SAFETY: as above.
                    unsafe { avx2::turn_hue(pixels, turns) }
                }
            }
        }
    }
}

/// Sum of the grey values of pixels of `C` channels, of three rounded down.
pub fn gray_sum<const C: usize>(level: Level, rgb: &[u8]) -> u64 {
    if C == 1 {
        return rgb.iter().copied().map(u64::from).sum();
    }
    let pixels = rgb.as_chunks::<3>().0;
    match level.kind() {
        Kind::Scalar => scalar::gray_sum(pixels),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the level is `Avx2` only where the CPU has AVX2 and FMA.
        Kind::Avx2 | Kind::Avx512 => unsafe { avx2::gray_sum(pixels) },
    }
}
