//! Plans for JPEGs that are decoded at a fraction of their size.

use forebay_core::coeffs::Table;
use forebay_core::{Axis, ImagePlan, Region, Size, Taps};

/// Decoded pixels that are left to an output pixel, across and down, at least: within what is one
/// pixel now, weights do not change any more. With 2, values of photos differ by two thirds as
/// much and take 5 % longer; with 1 they differ by twice as much, and take 3 % less.
const LEFT: f64 = 1.5;

/// A plan on the image at `1 / by` of its size.
#[derive(Debug)]
pub(super) struct Fraction {
    pub(super) plan: ImagePlan,
    pub(super) by: u32,
}

impl Fraction {
    /// What the plan allows: half, a quarter or an eighth; none for a plan that does not make the
    /// image smaller by [`LEFT`] times that, in one resize of both axes that counts every pixel.
    pub(super) fn of(plan: &ImagePlan, size: Size) -> Option<Self> {
        let first = plan.passes.first()?;
        let (x, y) = (smoothed(&first.x)?, smoothed(&first.y)?);
        let by = [8, 4, 2].into_iter().find(|by| x.ratio.min(y.ratio) >= f64::from(*by) * LEFT)?;
        let region = blocks(plan.region, by, size);
        let Region { x: left, y: top, .. } = plan.region;
        let (left, top) = if plan.transpose { (top, left) } else { (left, top) };
        let axis = |axis: &Axis, table: &Table, before: u32| Axis {
            taps: Taps::Weighted(table.over_blocks(before % by, by)),
            ..*axis
        };
        let mut plan = ImagePlan { region, ..plan.clone() };
        plan.passes[0].x = axis(&first.x, x.table, left);
        plan.passes[0].y = axis(&first.y, y.table, top);
        Some(Self { plan, by })
    }
}

/// A resize that counts every pixel, and how many of them there are to an output pixel.
struct Smoothed<'a> {
    table: &'a Table,
    ratio: f64,
}

fn smoothed(axis: &Axis) -> Option<Smoothed<'_>> {
    let Taps::Weighted(table) = &axis.taps else { return None };
    let extent = axis.extent()?;
    let ratio = f64::from(extent.end - extent.start) / f64::from(table.len());
    // Without antialiasing an output pixel has the same few taps whatever the ratio.
    (f64::from(table.taps) >= ratio).then_some(Smoothed { table, ratio })
}

/// The blocks of `by` pixels that hold a region's.
fn blocks(region: Region, by: u32, size: Size) -> Region {
    let Region { x, y, width, height } = region;
    let span = |start: u32, length: u32, limit: u32| {
        let end = (start + length).min(limit);
        (start / by, end.div_ceil(by) - start / by)
    };
    let (x, width) = span(x, width, size.width);
    let (y, height) = span(y, height, size.height);
    Region { x, y, width, height }
}

#[cfg(test)]
mod tests {
    use super::*;
    use forebay_core::coeffs::Interpolation;
    use forebay_core::recipe::ResizedCrop;
    use forebay_core::{Channels, DType, Layout, Orientation, Write};

    /// Of what a crop of an image of 1001x803 pixels, from (5, 13) on, is decoded.
    fn of(size: (u32, u32), out: (u32, u32), orientation: Orientation) -> Option<(u32, Region)> {
        let stored = Size { width: 1001, height: 803 };
        let crop = ResizedCrop {
            bounds: Some([5, 13, i64::from(5 + size.0), i64::from(13 + size.1)]),
            size: Size { width: out.0, height: out.1 },
            interpolation: Interpolation::Bilinear,
            antialias: true,
            flip: false,
        };
        let write = Write {
            channels: Channels::Rgb,
            dtype: DType::UInt8,
            layout: Layout::Contiguous,
            scale: false,
            normalize: None,
        };
        let plan = crop.plan(stored, orientation, write).unwrap();
        Fraction::of(&plan, stored).map(|fraction| (fraction.by, fraction.plan.region))
    }

    #[test]
    fn enough_pixels_are_left_to_each_of_the_output() {
        let upright = Orientation::default();
        let cases = [((120, 120), 8), ((119, 120), 4), ((60, 70), 4), ((30, 640), 2)];
        for (size, by) in cases {
            assert_eq!(of(size, (10, 10), upright).unwrap().0, by, "{size:?}");
        }
        assert_eq!(of((29, 400), (10, 10), upright), None);
    }

    #[test]
    fn blocks_hold_the_region() {
        let region = Region { x: 0, y: 1, width: 21, height: 22 };
        assert_eq!(of((160, 164), (10, 10), Orientation::default()), Some((8, region)));
        // The last columns and rows of blocks are not whole.
        let region = Region { x: 0, y: 1, width: 126, height: 100 };
        assert_eq!(of((996, 790), (10, 10), Orientation::default()), Some((8, region)));
    }
}
