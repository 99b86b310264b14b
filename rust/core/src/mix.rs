//! Images of one batch mixed with each other, as numbers only.

use crate::{Blend, Region};

/// One mixing of a batch: each image with the one before it, the first with the last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mixing {
    /// What becomes of the pixels.
    pub mix: Mix,
    /// The image's own part of its label; the rest is the other's.
    pub weight: f64,
}

/// What an image takes from the other one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Mix {
    /// torchvision's `MixUp`: of every element a part. Products and sum are rounded to the elements'
    /// type, floats all of them.
    Blend(Blend),
    /// torchvision's `CutMix`: all of a region, which may be empty.
    Paste(Region),
}
