//! Fixed-point resampling tables, shared by the CPU and the CUDA renderer.
//!
//! Weights are those of Pillow and of ATen's antialiased kernels: a filter of the given support,
//! stretched by the scale when minifying, normalised over the taps that lie inside the input, in
//! float64; then, as ATen does for uint8 (`aten/src/ATen/native/cpu/UpSampleKernel.cpp`,
//! `_compute_index_ranges_int16_weights`), rounded to int16 with as many fractional bits as the
//! largest weight of the table allows.

use serde::{Deserialize, Serialize};

/// Interpolation filter, by torchvision's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interpolation {
    /// The pixel at `floor(i * scale)`.
    Nearest,
    /// The pixel whose centre is nearest.
    NearestExact,
    /// Triangle.
    Bilinear,
    /// Cubic convolution; a = -0.5 with antialias (as Pillow), -0.75 without (as OpenCV).
    Bicubic,
}

/// Weights of one axis: output `i` is the sum over `k` of `weights[i * taps + k] * input[starts[i] + k]`,
/// rounded by half and shifted right by `precision`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    /// Weights kept per output position; unused ones are 0 and come last.
    pub taps: u32,
    /// Fractional bits of the weights.
    pub precision: u32,
    /// First input position per output position. `starts[i] + counts[i]` never passes the input's end.
    pub starts: Vec<u32>,
    /// Number of weights that are in use per output position, at least 1.
    pub counts: Vec<u32>,
    /// `taps` weights per output position.
    pub weights: Vec<i16>,
}

impl Table {
    /// Output positions.
    pub fn len(&self) -> u32 {
        u32::try_from(self.starts.len()).expect("an axis fits 32 bits")
    }

    /// Whether there is no output position at all.
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// First input position of output `i` and its weights in use.
    pub fn row(&self, i: usize) -> (usize, &[i16]) {
        let first = i * self.taps as usize;
        (
            self.starts[i] as usize,
            &self.weights[first..first + self.counts[i] as usize],
        )
    }
}
