//! Draws and matrices of the transforms that turn, shear and tilt, and of those that look at a
//! pixel's neighbours.
//!
//! Matrices are torchvision's, computed in float64 and rounded to float32 where it does.

use super::Step;
use crate::coeffs::Interpolation;
use crate::recipe::MAX_SIDE;
use crate::recipe::spec::Transform;
use crate::rng::Draws;
use crate::{Gather, Limits, Size, Warp};

/// Draws for the transforms of this file.
///
/// # Errors
/// A sentence on why the image does not suit the transform.
pub(super) fn resolve(
    transform: &Transform,
    size: Size,
    draws: &mut Draws,
    steps: &mut Vec<Step>,
) -> Result<(), String> {
    match transform {
        Transform::RandomRotation { degrees: [low, high], interpolation, expand, center, fill } => {
            let sampling = Sampling { interpolation: *interpolation, fill: *fill };
            let angle = draws.uniform(*low, *high);
            rotate(angle, *expand, *center, size, sampling, steps)?;
        }
        Transform::RandomAffine {
            degrees,
            translate,
            scale,
            shear,
            interpolation,
            fill,
            center,
        } => {
            let affine = random_affine(size, *degrees, *translate, *scale, *shear, *center, draws);
            let sampling = Sampling { interpolation: *interpolation, fill: *fill };
            steps.push(affine.step(size, sampling));
        }
        Transform::RandomPerspective { distortion_scale, p, interpolation, fill }
            if draws.bernoulli(*p) =>
        {
            let sampling = Sampling { interpolation: *interpolation, fill: *fill };
            steps.extend(random_perspective(size, *distortion_scale, sampling, draws));
        }
        Transform::RandomAdjustSharpness { sharpness_factor, p } if draws.bernoulli(*p) => {
            steps.extend(sharpened(size, *sharpness_factor));
        }
        Transform::GaussianBlur { kernel_size, sigma: [low, high] } => {
            steps.push(blurred(size, *kernel_size, draws.uniform(*low, *high))?);
        }
        _ => {}
    }
    Ok(())
}

/// How a warp samples its input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampling {
    pub(super) interpolation: Interpolation,
    pub(super) fill: Option<[u8; 3]>,
}

/// `functional.affine`'s arguments.
#[derive(Debug, Clone, Copy)]
pub(super) struct Affine {
    /// Degrees.
    pub(super) angle: f64,
    /// Pixels.
    pub(super) translate: [f64; 2],
    pub(super) scale: f64,
    /// Degrees.
    pub(super) shear: [f64; 2],
    /// Pixels from the image's upper left corner; `None` for its middle.
    pub(super) center: Option<[f64; 2]>,
}

impl Affine {
    pub(super) const IDENTITY: Self =
        Self { angle: 0.0, translate: [0.0; 2], scale: 1.0, shear: [0.0; 2], center: None };

    /// `_get_inverse_affine_matrix`, for centres relative to the image's middle.
    fn inverse(&self, size: Size) -> [[f64; 3]; 2] {
        let sides = [f64::from(size.width), f64::from(size.height)];
        let middle = |axis: usize| self.center.map_or(0.0, |at| at[axis] - sides[axis] * 0.5);
        let (cx, cy) = (middle(0), middle(1));
        let rot = self.angle.to_radians();
        let [sx, sy] = self.shear.map(f64::to_radians);
        let [tx, ty] = self.translate;
        let a = (rot - sy).cos() / sy.cos();
        let b = -(a * sx.tan() + rot.sin());
        let c = (rot - sy).sin() / sy.cos();
        let d = rot.cos() - c * sx.tan();
        let scale = self.scale;
        let rows = [[d / scale, -b / scale], [-c / scale, a / scale]];
        let moved = |[across, down]: [f64; 2], center: f64| {
            [across, down, center - across * (cx + tx) - down * (cy + ty)]
        };
        [moved(rows[0], cx), moved(rows[1], cy)]
    }

    /// `functional.affine`.
    pub(super) fn step(&self, size: Size, sampling: Sampling) -> Step {
        warp(self.inverse(size), size, size, sampling)
    }
}

/// `_affine_grid`: a matrix from coordinates about the middle to such.
fn warp(matrix: [[f64; 3]; 2], input: Size, output: Size, sampling: Sampling) -> Step {
    let half = [single(0.5 * f64::from(input.width)), single(0.5 * f64::from(input.height))];
    let rows = [0, 1].map(|axis| matrix[axis].map(|part| single(part) / half[axis]));
    let origin = [output.width, output.height].map(|side| single((1.0 - f64::from(side)) * 0.5));
    Step::Gather(Gather::Warp(Warp {
        size: output,
        origin,
        rows,
        projection: None,
        bilinear: !sampling.interpolation.is_nearest(),
        fill: sampling.fill,
    }))
}

/// `functional.rotate`: counter-clockwise, about the middle or `center`.
pub(super) fn rotate(
    angle: f64,
    expand: bool,
    center: Option<[f64; 2]>,
    size: Size,
    sampling: Sampling,
    steps: &mut Vec<Step>,
) -> Result<(), String> {
    let angle = angle.rem_euclid(360.0);
    let quarters = (0..4).find(|count| angle.total_cmp(&(90.0 * f64::from(*count))).is_eq());
    let turns = expand || size.width == size.height;
    match quarters.filter(|_| center.is_none()) {
        Some(0) => return Ok(()),
        Some(2) => {
            steps.extend([Step::FlipX, Step::FlipY]);
            return Ok(());
        }
        Some(count) if turns => {
            // Every pixel is one of the input's.
            let down = if count == 1 { 1.0 } else { -1.0 };
            let matrix = [[0.0, -down, 0.0], [down, 0.0, 0.0]];
            let sampling = Sampling { interpolation: Interpolation::Nearest, ..sampling };
            steps.push(warp(matrix, size, size.transposed(), sampling));
            return Ok(());
        }
        _ => {}
    }
    let matrix = Affine { angle: -angle, center, ..Affine::IDENTITY }.inverse(size);
    let output = if expand { expanded(&matrix, size) } else { size };
    let (longest, most) = (output.width.max(output.height), Limits::default().max_pixels);
    if longest > MAX_SIDE || output.pixels() > most {
        return Err(format!(
            "RandomRotation makes {output} of {size}; sides must be 1..={MAX_SIDE}, and pixels \
             {most} at most"
        ));
    }
    steps.push(warp(matrix, size, output, sampling));
    Ok(())
}

/// `_compute_affine_output_size`, in float32 as there.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole numbers that are not negative; `as` saturates"
)]
fn expanded(matrix: &[[f64; 3]; 2], size: Size) -> Size {
    let half = [single(0.5 * f64::from(size.width)), single(0.5 * f64::from(size.height))];
    let corners = [[-1.0, -1.0], [-1.0, 1.0], [1.0, 1.0], [1.0, -1.0]];
    let side = |axis: usize| {
        let [across, down, by] = matrix[axis].map(single);
        let at = corners
            .map(|[x, y]: [f32; 2]| x * half[0] * across + y * half[1] * down + by + half[axis]);
        // Truncated to a ten-thousandth first.
        let cut = |value: f32| (value * 1e4).trunc() * 1e-4;
        let most = at.into_iter().fold(f32::MIN, f32::max);
        let least = at.into_iter().fold(f32::MAX, f32::min);
        (cut(most).ceil() - cut(least).floor()) as u32
    };
    Size { width: side(0).max(1), height: side(1).max(1) }
}

/// `RandomAffine.make_params`.
pub(super) fn random_affine(
    size: Size,
    degrees: [f64; 2],
    translate: Option<[f64; 2]>,
    scale: Option<[f64; 2]>,
    shear: Option<[f64; 4]>,
    center: Option<[f64; 2]>,
    draws: &mut Draws,
) -> Affine {
    let mut between = |[low, high]: [f64; 2]| draws.uniform(low, high);
    let angle = between(degrees);
    let translate = translate.map_or([0.0; 2], |[across, down]| {
        let most = [across * f64::from(size.width), down * f64::from(size.height)];
        most.map(|most| between([-most, most]).round_ties_even())
    });
    let scale = scale.map_or(1.0, &mut between);
    let shear = shear.map_or([0.0; 2], |[x0, x1, y0, y1]| [between([x0, x1]), between([y0, y1])]);
    Affine { angle, translate, scale, shear, center }
}

/// `RandomPerspective.make_params` and `functional.perspective`: where four points near the corners
/// become the corners.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "part of a side's half, which is not negative"
)]
fn random_perspective(
    size: Size,
    distortion: f64,
    sampling: Sampling,
    draws: &mut Draws,
) -> Option<Step> {
    let Size { width, height } = size;
    let bound = |side: u32| (distortion * f64::from(side / 2)) as u32 + 1;
    let mut near = |side: u32, far: bool| {
        let drawn = draws.below(u64::from(bound(side)));
        let from = if far { side - bound(side) } else { 0 };
        f64::from(from) + drawn as f64
    };
    let ends = [(false, false), (true, false), (true, true), (false, true)]
        .map(|(right, bottom)| [near(width, right), near(height, bottom)]);
    let (right, bottom) = (f64::from(width) - 1.0, f64::from(height) - 1.0);
    let starts = [[0.0, 0.0], [right, 0.0], [right, bottom], [0.0, bottom]];
    perspective(&starts, &ends).map(|coefficients| tilted(coefficients, size, sampling))
}

/// `_perspective_grid`.
fn tilted(coefficients: [f32; 8], size: Size, sampling: Sampling) -> Step {
    let [to_x, to_y] = [0, 3].map(|first| [0, 1, 2].map(|at| coefficients[first + at]));
    let half = [single(0.5 * f64::from(size.width)), single(0.5 * f64::from(size.height))];
    let rows = [to_x, to_y];
    Step::Gather(Gather::Warp(Warp {
        size,
        origin: [0.5; 2],
        rows: [0, 1].map(|axis| rows[axis].map(|part| part / half[axis])),
        projection: Some([coefficients[6], coefficients[7]]),
        bilinear: !sampling.interpolation.is_nearest(),
        fill: sampling.fill,
    }))
}

/// `_get_perspective_coeffs`: the map that takes `ends` to `starts`; `None` if three of them lie on a
/// line.
fn perspective(starts: &[[f64; 2]; 4], ends: &[[f64; 2]; 4]) -> Option<[f32; 8]> {
    let mut rows = [[0.0; 9]; 8];
    for (place, (&[x, y], &[u, v])) in ends.iter().zip(starts).enumerate() {
        rows[2 * place] = [x, y, 1.0, 0.0, 0.0, 0.0, -u * x, -u * y, u];
        rows[2 * place + 1] = [0.0, 0.0, 0.0, x, y, 1.0, -v * x, -v * y, v];
    }
    // Gauss and Jordan, with the largest pivot of each column.
    for column in 0..8 {
        let size = |row: &usize| rows[*row][column].abs();
        let pivot = (column..8).max_by(|a, b| size(a).total_cmp(&size(b)))?;
        if rows[pivot][column].abs() < 1e-9 {
            return None;
        }
        rows.swap(column, pivot);
        let divisor = rows[column][column];
        rows[column].iter_mut().for_each(|part| *part /= divisor);
        let by = rows[column];
        for (row, parts) in rows.iter_mut().enumerate() {
            let times = parts[column];
            if row != column {
                parts.iter_mut().zip(by).for_each(|(part, by)| *part -= times * by);
            }
        }
    }
    Some(rows.map(|row| single(row[8])))
}

/// `functional.adjust_sharpness`; images of two pixels across or down stay as they are.
pub(super) fn sharpened(size: Size, factor: f64) -> Option<Step> {
    let blur = single(1.0 - factor);
    (size.width > 2 && size.height > 2).then_some(Step::Gather(Gather::Sharpen { blur }))
}

/// `functional.gaussian_blur`.
fn blurred(size: Size, kernel: [u32; 2], sigma: f64) -> Result<Step, String> {
    for (side, kernel) in [size.width, size.height].into_iter().zip(kernel) {
        if kernel / 2 >= side {
            let least = kernel / 2 + 1;
            return Err(format!(
                "kernel_size {kernel} needs sides of at least {least}, the image is {size}"
            ));
        }
    }
    Ok(Step::Blur { kernel, sigma })
}

#[allow(clippy::cast_possible_truncation, reason = "torchvision's tensors are float32")]
fn single(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLING: Sampling = Sampling { interpolation: Interpolation::Nearest, fill: None };

    #[test]
    fn a_quarter_turn_of_an_expanded_image_swaps_its_sides() {
        let size = Size { width: 30, height: 20 };
        for (angle, want) in [(90.0, (20, 30)), (270.0, (20, 30)), (45.0, (36, 36))] {
            let mut steps = Vec::new();
            rotate(angle, true, None, size, SAMPLING, &mut steps).unwrap();
            let [Step::Gather(Gather::Warp(warp))] = steps[..] else { panic!("{steps:?}") };
            assert_eq!((warp.size.width, warp.size.height), want, "{angle}");
        }
    }

    #[test]
    fn a_map_of_four_points_takes_them_where_they_belong() {
        let starts = [[0.0, 0.0], [99.0, 0.0], [99.0, 49.0], [0.0, 49.0]];
        let ends = [[5.0, 3.0], [90.0, 1.0], [95.0, 44.0], [2.0, 48.0]];
        let map = perspective(&starts, &ends).unwrap().map(f64::from);
        for ([x, y], wanted) in ends.into_iter().zip(starts) {
            let divisor = map[6] * x + map[7] * y + 1.0;
            for (axis, wanted) in wanted.into_iter().enumerate() {
                let [across, down, by] = [0, 1, 2].map(|at| map[3 * axis + at]);
                assert!(((across * x + down * y + by) / divisor - wanted).abs() < 1e-3);
            }
        }
        assert_eq!(perspective(&starts, &[[1.0, 1.0]; 4]), None, "all in one place");
    }
}
