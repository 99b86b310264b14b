//! The crops that a call asks for.

use super::invalid;
use crate::ffi::CropOptions;
use crate::guard::Error;
use forebay_core::Size;
use forebay_core::coeffs::Interpolation;
use forebay_core::recipe::ResizedCrop;

/// Longest side of an op's result: JPEG's own limit, and far from any overflow.
const MAX_SIDE: i64 = 65_535;

/// The crops of a batch, checked.
pub(super) struct Crops<'a> {
    pub(super) size: Size,
    interpolation: Interpolation,
    antialias: bool,
    boxes: &'a [[i64; 4]],
    flip: &'a [bool],
}

impl<'a> Crops<'a> {
    pub(super) fn new(
        options: &CropOptions,
        boxes: &'a [i64],
        flip: &'a [bool],
        items: usize,
    ) -> Result<Self, Error> {
        let side = |side: i64| {
            let fits = Some(side).filter(|side| (1..=MAX_SIDE).contains(side));
            fits.and_then(|side| u32::try_from(side).ok())
        };
        let (Some(height), Some(width)) = (side(options.height), side(options.width)) else {
            let (height, width) = (options.height, options.width);
            return Err(invalid(format!(
                "size must be (height, width) of 1..={MAX_SIDE}, got ({height}, {width})"
            )));
        };
        let interpolation = crate::options::parse("interpolation", options.interpolation)?;
        let (boxes, rest) = boxes.as_chunks::<4>();
        if !rest.is_empty() || (!boxes.is_empty() && boxes.len() != items) {
            let rows = boxes.len();
            return Err(invalid(format!("boxes must be ({items}, 4) int64, got {rows} rows")));
        }
        if !flip.is_empty() && flip.len() != items {
            return Err(invalid(format!("flip must be ({items},) bool, got {}", flip.len())));
        }
        let antialias = options.antialias;
        Ok(Self { size: Size { width, height }, interpolation, antialias, boxes, flip })
    }

    pub(super) fn of(&self, item: usize) -> ResizedCrop {
        ResizedCrop {
            bounds: self.boxes.get(item).copied(),
            size: self.size,
            interpolation: self.interpolation,
            antialias: self.antialias,
            flip: self.flip.get(item).copied().unwrap_or_default(),
        }
    }

    /// Bytes of one image of the batch.
    pub(super) fn item(&self, element: usize) -> usize {
        3 * element * self.size.width as usize * self.size.height as usize
    }

    /// Sizes of the batch.
    pub(super) fn batch(&self, items: usize) -> [usize; 4] {
        [items, 3, self.size.height as usize, self.size.width as usize]
    }
}
