//! Boxes under the geometry that their image goes through.

use super::resolve::Step;
use crate::{Gather, Size, Warp};

/// Moves `x0, y0, x1, y1` boxes of an upright image of `size` through `steps`; parts outside the
/// canvas are cut off, and a box that lies outside entirely keeps its row with no area.
#[allow(clippy::cast_precision_loss, reason = "sides of images fit an f32's 24 bits")]
pub(super) fn apply(mut boxes: Vec<[f32; 4]>, steps: &[Step], mut size: Size) -> Vec<[f32; 4]> {
    for step in steps {
        let (width, height) = (size.width as f32, size.height as f32);
        match *step {
            Step::Pad { sides: [left, top, ..], .. } => {
                let (left, top) = (left as f32, top as f32);
                for [x0, y0, x1, y1] in &mut boxes {
                    (*x0, *x1) = (*x0 + left, *x1 + left);
                    (*y0, *y1) = (*y0 + top, *y1 + top);
                }
            }
            Step::Crop { x, y, size: crop, .. } => {
                let (x, y) = (x as f32, y as f32);
                let (right, bottom) = (crop.width as f32, crop.height as f32);
                for [x0, y0, x1, y1] in &mut boxes {
                    (*x0, *x1) = ((*x0 - x).clamp(0.0, right), (*x1 - x).clamp(0.0, right));
                    (*y0, *y1) = ((*y0 - y).clamp(0.0, bottom), (*y1 - y).clamp(0.0, bottom));
                }
            }
            Step::Resize { size: new, .. } => {
                let (across, down) = (new.width as f32 / width, new.height as f32 / height);
                for [x0, y0, x1, y1] in &mut boxes {
                    (*x0, *x1) = (*x0 * across, *x1 * across);
                    (*y0, *y1) = (*y0 * down, *y1 * down);
                }
            }
            Step::FlipX => {
                for [x0, _, x1, _] in &mut boxes {
                    (*x0, *x1) = (width - *x1, width - *x0);
                }
            }
            Step::FlipY => {
                for [_, y0, _, y1] in &mut boxes {
                    (*y0, *y1) = (height - *y1, height - *y0);
                }
            }
            Step::Gather(Gather::Warp(warp)) => {
                let map = Map::new(&warp, size);
                for each in &mut boxes {
                    *each = map.enclose(*each, warp.size);
                }
            }
            Step::Color(_)
            | Step::Gather(Gather::Sharpen { .. })
            | Step::Blur { .. }
            | Step::Mix { .. }
            | Step::Erase { .. } => {}
        }
        size = step.size(size);
    }
    boxes
}

/// From places of a warp's input to such of its result: the other way round than its grid.
struct Map {
    rows: [[f64; 3]; 3],
    /// From its coordinates to places.
    shift: [f64; 2],
}

impl Map {
    #[allow(clippy::many_single_char_names, reason = "elements of a matrix")]
    /// The inverse of the grid, whose numbers are pixels over half a side, less 1 or about 0.
    fn new(warp: &Warp, input: Size) -> Self {
        let half = [f64::from(input.width) / 2.0, f64::from(input.height) / 2.0];
        let [g, h] = warp.projection.unwrap_or_default().map(f64::from);
        let last = [g, h, 1.0];
        let row = |axis: usize| {
            // An affine grid is about the middle, a projected one from the corner.
            let middle = if warp.projection.is_none() { half[axis] } else { 0.0 };
            [0, 1, 2].map(|at| f64::from(warp.rows[axis][at]) * half[axis] + middle * last[at])
        };
        let [[a, b, c], [d, e, f], [g, h, i]] = [row(0), row(1), last];
        // Adjugates: a common factor drops out.
        let rows = [
            [e * i - f * h, c * h - b * i, b * f - c * e],
            [f * g - d * i, a * i - c * g, c * d - a * f],
            [d * h - e * g, b * g - a * h, a * e - b * d],
        ];
        Self { rows, shift: warp.origin.map(|origin| 0.5 - f64::from(origin)) }
    }

    /// The box around the moved one, within the result.
    #[allow(clippy::cast_possible_truncation, reason = "places in an image")]
    fn enclose(&self, [x0, y0, x1, y1]: [f32; 4], size: Size) -> [f32; 4] {
        let corners = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]].map(|corner| {
            let [x, y] = corner.map(f64::from);
            let [across, down, by] = self.rows.map(|row| row[0] * x + row[1] * y + row[2]);
            [across / by, down / by]
        });
        let bounds = |axis: usize, side: u32| {
            let at = corners.map(|corner| corner[axis] + self.shift[axis]);
            let least = at.into_iter().fold(f64::MAX, f64::min);
            let most = at.into_iter().fold(f64::MIN, f64::max);
            [least, most].map(|at| at.clamp(0.0, f64::from(side)) as f32)
        };
        let ([left, right], [top, bottom]) = (bounds(0, size.width), bounds(1, size.height));
        [left, top, right, bottom]
    }
}
