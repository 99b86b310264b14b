//! Fixed-point resampling tables, shared by the CPU and the CUDA renderer.
//!
//! Weights are those of Pillow and of ATen's antialiased kernels: a filter of the given support,
//! stretched by the scale when minifying, normalised over the taps that lie inside the input, in
//! float64; then, as ATen does for uint8 (`UpSampleKernel.cpp`,
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
        (self.starts[i] as usize, &self.weights[first..first + self.counts[i] as usize])
    }
}

impl Interpolation {
    /// Whether outputs are single input pixels.
    pub fn is_nearest(self) -> bool {
        matches!(self, Self::Nearest | Self::NearestExact)
    }

    /// Half the filter's width in input pixels at scale 1.
    fn support(self) -> f64 {
        match self {
            Self::Nearest | Self::NearestExact => 0.5,
            Self::Bilinear => 1.0,
            Self::Bicubic => 2.0,
        }
    }

    fn filter(self, x: f64, antialias: bool) -> f64 {
        let x = x.abs();
        match self {
            Self::Nearest | Self::NearestExact => f64::from(x < 0.5),
            Self::Bilinear => (1.0 - x).max(0.0),
            Self::Bicubic => {
                let a = if antialias { -0.5 } else { -0.75 };
                if x < 1.0 {
                    ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
                } else if x < 2.0 {
                    (((x - 5.0) * x + 8.0) * x - 4.0) * a
                } else {
                    0.0
                }
            }
        }
    }
}

/// Input position of each output position under nearest interpolation.
///
/// # Panics
/// If a length is 0 or `interpolation` is not a nearest one.
pub fn nearest(input: u32, output: u32, interpolation: Interpolation) -> Vec<u32> {
    assert!(input > 0 && output > 0 && interpolation.is_nearest());
    // ATen computes this scale and its products in float32 (nearest_neighbor_compute_source_index).
    let scale = input as f32 / output as f32;
    let offset = if interpolation == Interpolation::NearestExact { 0.5 } else { 0.0 };
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions are small and not negative"
    )]
    let source = |i: u32| (((i as f32 + offset) * scale) as u32).min(input - 1);
    (0..output).map(source).collect()
}

impl Table {
    /// The table that resamples `input` positions to `output` positions.
    ///
    /// ```
    /// use forebay_core::coeffs::{Interpolation, Table};
    /// let half = Table::new(8, 4, Interpolation::Bilinear, true);
    /// assert_eq!(half.row(1).0, 1);
    /// ```
    ///
    /// # Panics
    /// If a length is 0 or `interpolation` is a nearest one.
    pub fn new(input: u32, output: u32, interpolation: Interpolation, antialias: bool) -> Self {
        assert!(input > 0 && output > 0 && !interpolation.is_nearest());
        let rows = if antialias {
            Rows::antialiased(input, output, interpolation)
        } else {
            Rows::point_sampled(input, output, interpolation)
        };
        Self::fixed(rows)
    }

    /// The table that blurs `input` positions with a Gaussian over `kernel` of them, an odd number,
    /// of standard deviation `sigma`; beyond the border the input is mirrored, without its last
    /// position. Weights are `torchvision`'s `_get_gaussian_kernel1d`'s, in float64.
    ///
    /// # Panics
    /// If half the kernel is not shorter than the input.
    pub fn gaussian(input: u32, kernel: u32, sigma: f64) -> Self {
        assert!(kernel % 2 == 1 && kernel / 2 < input);
        Self::fixed(Rows::gaussian(input, kernel, sigma))
    }

    fn fixed(rows: Rows) -> Self {
        let largest = rows.weights.iter().fold(0.0_f64, |a, &b| a.max(b));
        let precision = precision(largest);
        let Rows { starts, counts, weights: exact } = rows;
        let taps = counts.iter().max().map_or(0, |&count| count as usize);
        let mut weights = vec![0; starts.len() * taps];
        let mut exact = exact.into_iter();
        for (row, &count) in weights.chunks_exact_mut(taps.max(1)).zip(&counts) {
            for slot in &mut row[..count as usize] {
                *slot = fixed_point(exact.next().expect("as many as are counted"), precision);
            }
        }
        let taps = u32::try_from(taps).expect("taps do not exceed the input's length");
        Self { taps, precision, starts, counts, weights }
    }

    /// The rows `range`, for an output that is cropped.
    pub(crate) fn slice(&self, range: std::ops::Range<usize>) -> Self {
        let taps = self.taps as usize;
        Self {
            taps: self.taps,
            precision: self.precision,
            starts: self.starts[range.clone()].to_vec(),
            counts: self.counts[range.clone()].to_vec(),
            weights: self.weights[range.start * taps..range.end * taps].to_vec(),
        }
    }

    /// The same outputs in reverse order.
    pub(crate) fn reverse_outputs(&mut self) {
        self.starts.reverse();
        self.counts.reverse();
        let taps = self.taps as usize;
        let rows: Vec<i16> = self.weights.chunks_exact(taps).rev().flatten().copied().collect();
        self.weights = rows;
    }

    /// The same outputs from an input of length `input` that lies in memory back to front.
    pub(crate) fn reverse_inputs(&mut self, input: u32) {
        for (i, row) in self.weights.chunks_exact_mut(self.taps as usize).enumerate() {
            row[..self.counts[i] as usize].reverse();
            self.starts[i] = input - self.starts[i] - self.counts[i];
        }
    }

    /// The same outputs from means of `size` input positions each, of which the first one begins at
    /// a multiple of `size`: `first` of its positions lie before this table's input. Weights of a
    /// block add up, and lose as many of their fractional bits as they must to fit.
    pub fn over_blocks(&self, first: u32, size: u32) -> Self {
        let block = |position: u32| (first + position) / size;
        let spans = self.starts.iter().zip(&self.counts);
        let (starts, counts): (Vec<u32>, Vec<u32>) = spans
            .map(|(&start, &count)| (block(start), block(start + count - 1) - block(start) + 1))
            .unzip();
        let taps = counts.iter().copied().max().unwrap_or(0);
        let mut sums = vec![0_i32; starts.len() * taps as usize];
        for (i, sums) in sums.chunks_exact_mut((taps as usize).max(1)).enumerate() {
            for (position, &weight) in (self.starts[i]..).zip(self.row(i).1) {
                sums[(block(position) - starts[i]) as usize] += i32::from(weight);
            }
        }
        let most = sums.iter().map(|sum| sum.unsigned_abs()).max().unwrap_or(0);
        // Rounding may carry into another bit.
        let fits = |lost: &u32| (most + (1 << lost >> 1)) >> lost <= i16::MAX.unsigned_abs().into();
        let lost = (0..self.precision).find(fits).unwrap_or(self.precision);
        let rounded =
            |sum: i32| i16::try_from((sum + (1 << lost >> 1)) >> lost).unwrap_or(i16::MAX);
        let weights = sums.into_iter().map(rounded).collect();
        Self { taps, precision: self.precision - lost, starts, counts, weights }
    }

    /// Moves every start.
    pub(crate) fn shift(&mut self, by: impl Fn(u32) -> u32) {
        for start in &mut self.starts {
            *start = by(*start);
        }
    }

    /// The input positions from the first that has any weight to the last.
    pub(crate) fn extent(&self) -> Option<std::ops::Range<u32>> {
        let first = self.starts.iter().min()?;
        let last =
            self.starts.iter().zip(&self.counts).map(|(start, count)| start + count).max()?;
        Some(*first..last)
    }
}

/// Exact weights of all outputs, one row behind the other.
struct Rows {
    starts: Vec<u32>,
    counts: Vec<u32>,
    weights: Vec<f64>,
}

impl Rows {
    /// Nothing yet, with room for `output` rows of `taps` weights.
    fn new(output: u32, taps: usize) -> Self {
        let rows = output as usize;
        Self {
            starts: Vec::with_capacity(rows),
            counts: Vec::with_capacity(rows),
            weights: Vec::with_capacity(rows * taps),
        }
    }

    /// Appends a row and returns its weights, to be adjusted.
    fn push(&mut self, start: u32, weights: impl Iterator<Item = f64>) -> &mut [f64] {
        let before = self.weights.len();
        self.weights.extend(weights);
        let row = &mut self.weights[before..];
        self.starts.push(start);
        self.counts.push(u32::try_from(row.len()).expect("at most the input's length"));
        row
    }

    /// Taps of a filter stretched over the scale, normalised over those inside the input.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions are small; a negative bound saturates to 0, as wanted"
    )]
    fn antialiased(input: u32, output: u32, interpolation: Interpolation) -> Self {
        let scale = f64::from(input) / f64::from(output);
        let stretch = scale.max(1.0);
        let support = interpolation.support() * stretch;
        let mut rows = Self::new(output, 2 * support as usize + 2);
        for i in 0..output {
            let center = scale * (f64::from(i) + 0.5);
            let first = (center - support + 0.5) as u32;
            let end = ((center + support + 0.5) as u32).min(input);
            let weight = |x: u32| {
                interpolation.filter((f64::from(x) - center + 0.5) * (1.0 / stretch), true)
            };
            let weights = rows.push(first, (first..end).map(weight));
            let total: f64 = weights.iter().sum();
            if total != 0.0 {
                for weight in weights {
                    *weight /= total;
                }
            }
        }
        rows
    }

    /// Taps about each position; those beyond the border count where they are mirrored to.
    fn gaussian(input: u32, kernel: u32, sigma: f64) -> Self {
        let half = i64::from(kernel / 2);
        // The outermost tap is this far away, in units of sigma times the square root of two.
        let edge = f64::from(kernel - 1) / (2.0 * 2.0_f64.sqrt());
        let weight = |tap: i64| {
            let far = if half == 0 { 0.0 } else { tap as f64 / half as f64 * edge };
            (-(far / sigma).powi(2)).exp()
        };
        let total: f64 = (-half..=half).map(weight).sum();
        let last = i64::from(input) - 1;
        let mut rows = Self::new(input, kernel as usize);
        for center in 0..=last {
            let (first, end) = ((center - half).max(0), (center + half).min(last));
            let start = u32::try_from(first).expect("not negative");
            let weights = rows.push(start, (first..=end).map(|_| 0.0));
            for tap in -half..=half {
                // Mirrored positions are among those on the spot.
                let at = (center + tap).abs();
                let at = if at > last { 2 * last - at } else { at };
                weights[usize::try_from(at - first).expect("within")] += weight(tap) / total;
            }
        }
        rows
    }

    /// Taps of an unstretched filter; the input's border pixels stand for what lies beyond them.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positions are small, and supports not negative"
    )]
    fn point_sampled(input: u32, output: u32, interpolation: Interpolation) -> Self {
        let scale = f64::from(input) / f64::from(output);
        let half = interpolation.support() as i64;
        let last = i64::from(input) - 1;
        let mut rows = Self::new(output, 2 * interpolation.support() as usize);
        for i in 0..output {
            let center = scale * (f64::from(i) + 0.5) - 0.5;
            let center =
                if interpolation == Interpolation::Bilinear { center.max(0.0) } else { center };
            let base = (center.floor() as i64).min(last);
            let fraction = (center - base as f64).clamp(0.0, 1.0);
            let first = (base - half + 1).clamp(0, last);
            let end = (base + half).clamp(0, last);
            let start = u32::try_from(first).expect("not negative");
            let weights = rows.push(start, (first..=end).map(|_| 0.0));
            for tap in base - half + 1..=base + half {
                let at = usize::try_from(tap.clamp(first, end) - first).expect("clamped");
                weights[at] += interpolation.filter((tap - base) as f64 - fraction, false);
            }
        }
        rows
    }
}

/// Fractional bits with which `largest` still fits an int16, at most 22.
fn precision(largest: f64) -> u32 {
    (0..22)
        .find(|bits| 0.5 + largest * f64::from(1_u32 << (bits + 1)) >= f64::from(1 << 15))
        .unwrap_or(22)
}

#[allow(clippy::cast_possible_truncation, reason = "`precision` keeps the product below 2^15")]
fn fixed_point(weight: f64, precision: u32) -> i16 {
    (weight * f64::from(1_u32 << precision) + 0.5_f64.copysign(weight)) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_of_every_output_sum_to_one() {
        for (input, output) in
            [(1, 1), (1, 9), (500, 224), (224, 500), (7, 3), (4000, 2), (2, 4000)]
        {
            for interpolation in [Interpolation::Bilinear, Interpolation::Bicubic] {
                for antialias in [true, false] {
                    let table = Table::new(input, output, interpolation, antialias);
                    for i in 0..output as usize {
                        let (start, weights) = table.row(i);
                        let sum: i32 = weights.iter().map(|&weight| i32::from(weight)).sum();
                        let error = sum - (1 << table.precision);
                        let bound = i32::try_from(weights.len()).unwrap();
                        assert!(error.abs() <= bound, "{input}->{output} row {i}: {error}");
                        assert!(start + weights.len() <= input as usize);
                    }
                }
            }
        }
    }

    #[test]
    fn halving_takes_the_triangle_of_four() {
        let table = Table::new(8, 4, Interpolation::Bilinear, true);
        let one = f64::from(1_u32 << table.precision);
        let (start, weights) = table.row(1);
        let got: Vec<f64> = weights.iter().map(|&weight| f64::from(weight) / one).collect();
        assert_eq!((start, got), (1, vec![0.125, 0.375, 0.375, 0.125]));
    }

    #[test]
    fn weights_of_blocks_add_up() {
        let table = Table::new(8, 4, Interpolation::Bilinear, true);
        let shares = |table: &Table, i: usize| {
            let one = f64::from(1_u32 << table.precision);
            let (start, weights) = table.row(i);
            (start, weights.iter().map(|&weight| f64::from(weight) / one).collect::<Vec<_>>())
        };
        assert_eq!(shares(&table.over_blocks(0, 2), 1), (0, vec![0.125, 0.75, 0.125]));
        assert_eq!(shares(&table.over_blocks(1, 2), 1), (1, vec![0.5, 0.5]));
        // Everything in one block: a weight of one, or all but the last of what int16 holds.
        let whole = table.over_blocks(3, 16);
        assert_eq!((whole.taps, shares(&whole, 2)), (1, (0, vec![1.0])));
    }

    #[test]
    fn nearest_matches_torch() {
        assert_eq!(nearest(5, 3, Interpolation::Nearest), [0, 1, 3]);
        assert_eq!(nearest(5, 3, Interpolation::NearestExact), [0, 2, 4]);
        assert_eq!(nearest(2, 5, Interpolation::Nearest), [0, 0, 0, 1, 1]);
    }

    #[test]
    fn reversing_twice_gives_the_same_table() {
        let table = Table::new(37, 11, Interpolation::Bicubic, true);
        let mut twice = table.clone();
        for _ in 0..2 {
            twice.reverse_outputs();
            twice.reverse_inputs(37);
        }
        assert_eq!(twice, table);
    }
}
