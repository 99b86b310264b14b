//! Boxes under the geometry that their image goes through.

use super::resolve::Step;
use crate::Size;

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
            Step::Color(_) | Step::Erase { .. } => {}
        }
        size = step.size(size);
    }
    boxes
}
