//! Plans without a recipe, for ops whose caller has drawn everything already.

use super::fuse::fuse;
use super::resolve::Step;
use crate::coeffs::Interpolation;
use crate::{ImagePlan, Orientation, Size, Write};

/// The plan of a whole upright image.
pub fn whole(size: Size, orientation: Orientation, write: Write) -> ImagePlan {
    fuse(&[], size, orientation, write)
}

/// A crop that is resized and perhaps mirrored: torchvision's `resized_crop`, then
/// `horizontal_flip`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResizedCrop {
    /// Left, top, right and bottom in pixels of the upright image, ends excluded; `None` for all
    /// of it.
    pub bounds: Option<[i64; 4]>,
    /// Size of the result.
    pub size: Size,
    /// Filter.
    pub interpolation: Interpolation,
    /// Stretch the filter when minifying.
    pub antialias: bool,
    /// Mirror left and right.
    pub flip: bool,
}

impl ResizedCrop {
    /// The plan for an image stored with `size`.
    ///
    /// # Errors
    /// A sentence on how the box misses the image.
    ///
    /// ```
    /// use forebay_core::coeffs::Interpolation;
    /// use forebay_core::recipe::ResizedCrop;
    /// # use forebay_core::{Channels, DType, Layout, Orientation, Size, Write};
    /// # let write = Write {
    /// #     channels: Channels::Rgb, dtype: DType::UInt8, layout: Layout::Contiguous, scale: false,
    /// #     normalize: None,
    /// # };
    /// let crop = ResizedCrop {
    ///     bounds: Some([10, 0, 30, 40]), size: Size { width: 8, height: 8 },
    ///     interpolation: Interpolation::Bilinear, antialias: true, flip: false,
    /// };
    /// let image = Size { width: 100, height: 50 };
    /// let plan = crop.plan(image, Orientation::default(), write).unwrap();
    /// assert_eq!((plan.region.x, plan.region.width), (10, 20));
    /// ```
    pub fn plan(
        &self,
        size: Size,
        orientation: Orientation,
        write: Write,
    ) -> Result<ImagePlan, String> {
        let upright = orientation.upright(size);
        let mut steps = Vec::with_capacity(3);
        if let Some(bounds) = self.bounds {
            steps.push(crop_step(bounds, upright)?);
        }
        let Self { size: target, interpolation, antialias, .. } = *self;
        steps.push(Step::Resize { size: target, interpolation, antialias });
        steps.extend(self.flip.then_some(Step::FlipX));
        Ok(fuse(&steps, size, orientation, write))
    }
}

fn crop_step([x0, y0, x1, y1]: [i64; 4], image: Size) -> Result<Step, String> {
    let inside = |low: i64, high: i64, limit: u32| {
        let length = high.checked_sub(low).filter(|length| *length > 0);
        let length = length.filter(|_| low >= 0 && high <= i64::from(limit));
        length.and_then(|length| u32::try_from(length).ok())
    };
    match (inside(x0, x1, image.width), inside(y0, y1, image.height)) {
        (Some(width), Some(height)) => {
            Ok(Step::Crop { x: x0, y: y0, size: Size { width, height }, fill: [0; 3] })
        }
        _ => Err(format!(
            "box ({x0}, {y0}, {x1}, {y1}) must hold pixels of the image of {image} and none outside; \
             boxes are x0, y0, x1, y1 with the ends excluded"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Channels, DType, Layout, Region};

    const WRITE: Write = Write {
        channels: Channels::Rgb,
        dtype: DType::UInt8,
        layout: Layout::Contiguous,
        scale: false,
        normalize: None,
    };

    fn crop(bounds: [i64; 4]) -> Result<ImagePlan, String> {
        let crop = ResizedCrop {
            bounds: Some(bounds),
            size: Size { width: 5, height: 7 },
            interpolation: Interpolation::Bilinear,
            antialias: true,
            flip: true,
        };
        crop.plan(
            Size { width: 40, height: 30 },
            Orientation::from_exif(6).unwrap_or_default(),
            WRITE,
        )
    }

    #[test]
    fn boxes_are_those_of_the_upright_image() {
        // Stored 40x30 and turned: upright 30x40.
        let plan = crop([0, 0, 30, 40]).unwrap();
        assert_eq!(plan.region, Region { x: 0, y: 0, width: 40, height: 30 });
        assert!(plan.transpose);
        assert!(crop([29, 39, 30, 40]).is_ok());
    }

    #[test]
    fn boxes_outside_are_refused() {
        let wrong = [
            [0, 0, 31, 40],
            [0, 0, 30, 41],
            [-1, 0, 3, 3],
            [3, 0, 3, 5],
            [5, 5, 2, 9],
            [i64::MIN, 0, i64::MAX, 1],
        ];
        for bounds in wrong {
            let message = crop(bounds).unwrap_err();
            assert!(message.contains("image of 30x40"), "{message}");
        }
    }
}
