//! One direction of a pass's geometry: crops, pads, flips and one resize, merged.
//!
//! Width and height never mix before the plan is done (a transposition happens on the way in), so
//! everything here is about positions on a line: input, then a crop of it, then scaled, and a
//! canvas that shows a window of the scaled line, possibly mirrored.

use super::spec::PaddingMode;
use crate::coeffs::{Interpolation, Table, nearest};
use crate::{Axis, Taps};

/// The pending geometry of one direction.
#[derive(Debug, Clone)]
pub(super) struct Line {
    input: u32,
    /// Part of the input that is scaled, so that no tap reaches beyond it.
    crop_start: u32,
    crop_len: u32,
    scaling: Option<Scaling>,
    /// Scaled length.
    scaled: u32,
    /// First scaled position that the canvas shows; may lie outside.
    window_start: i64,
    /// The canvas's length.
    window_len: u32,
    /// Scaled positions that hold image; earlier crops have cut off the rest.
    content_start: i64,
    content_end: i64,
    /// What the canvas shows outside.
    beyond: PaddingMode,
    flip: bool,
}

#[derive(Debug, Clone, Copy)]
struct Scaling {
    filter: Filter,
    /// The crop is mirrored before it is scaled: nearest sources, and the last bit of weights, are
    /// not symmetric.
    mirrored: bool,
}

/// What scaled positions are made of.
#[derive(Debug, Clone, Copy)]
enum Filter {
    Resample {
        interpolation: Interpolation,
        antialias: bool,
    },
    /// As many positions as before, each of so many.
    Gaussian {
        kernel: u32,
        sigma: f64,
    },
}

impl Line {
    /// The identity on `input` positions.
    pub(super) fn new(input: u32) -> Self {
        Self {
            input,
            crop_start: 0,
            crop_len: input,
            scaling: None,
            scaled: input,
            window_start: 0,
            window_len: input,
            content_start: 0,
            content_end: i64::from(input),
            beyond: PaddingMode::Constant,
            flip: false,
        }
    }

    /// The canvas's length.
    pub(super) fn len(&self) -> u32 {
        self.window_len
    }

    fn window_end(&self) -> i64 {
        self.window_start + i64::from(self.window_len)
    }

    /// Whether the canvas shows anything but image, and that not twice.
    fn goes_beyond(&self) -> bool {
        self.window_start < self.content_start || self.window_end() > self.content_end
    }

    /// Whether the canvas shows fill.
    pub(super) fn shows_fill(&self) -> bool {
        self.beyond == PaddingMode::Constant && self.goes_beyond()
    }

    /// Whether cropping the canvas to `start..start + len` would show more than the canvas has.
    pub(super) fn crop_pads(&self, start: i64, len: u32) -> bool {
        start < 0 || start + i64::from(len) > i64::from(self.window_len)
    }

    /// Whether the canvas can be padded with itself, in any mode but constant, without a pass of its
    /// own for what is pending.
    pub(super) fn can_pad(&self) -> bool {
        self.can_scale()
    }

    /// The canvas shows more of itself on both sides.
    pub(super) fn pad(&mut self, before: u32, behind: u32, mode: PaddingMode) {
        debug_assert!(self.can_pad() && mode != PaddingMode::Constant);
        (self.content_start, self.content_end) = (self.window_start, self.window_end());
        self.beyond = mode;
        self.window_start -= i64::from(if self.flip { behind } else { before });
        self.window_len += before + behind;
    }

    /// Whether the canvas can be cropped to `start..start + len` without a pass of its own for what is
    /// pending: fill does not go beside more of the image.
    pub(super) fn can_crop(&self, start: i64, len: u32) -> bool {
        self.beyond == PaddingMode::Constant || !self.crop_pads(start, len)
    }

    /// The canvas becomes `start..start + len` of itself.
    pub(super) fn crop(&mut self, start: i64, len: u32) {
        let start =
            if self.flip { i64::from(self.window_len) - start - i64::from(len) } else { start };
        if self.beyond == PaddingMode::Constant {
            self.content_start = self.content_start.max(self.window_start);
            self.content_end = self.content_end.min(self.window_end()).max(self.content_start);
        }
        self.window_start += start;
        self.window_len = len;
    }

    /// Whether a resize is pending.
    pub(super) fn is_scaled(&self) -> bool {
        self.scaling.is_some()
    }

    /// Whether `resize(len)` can join what is pending without changing a pixel.
    pub(super) fn can_resize(&self, len: u32) -> bool {
        len == self.window_len || self.can_scale()
    }

    /// Whether every position of the canvas can be made anew without changing what is pending.
    pub(super) fn can_scale(&self) -> bool {
        self.scaling.is_none() && !self.goes_beyond()
    }

    /// The canvas is scaled to `len`.
    pub(super) fn resize(&mut self, len: u32, interpolation: Interpolation, antialias: bool) {
        if len == self.window_len {
            return;
        }
        self.scale(len, Filter::Resample { interpolation, antialias });
    }

    /// Every position becomes a mean of `kernel` about it.
    pub(super) fn blur(&mut self, kernel: u32, sigma: f64) {
        self.scale(self.window_len, Filter::Gaussian { kernel, sigma });
    }

    fn scale(&mut self, len: u32, filter: Filter) {
        debug_assert!(self.can_scale());
        self.crop_start = u32::try_from(self.window_start).expect("the canvas shows image only");
        self.crop_len = self.window_len;
        let mirrored = std::mem::take(&mut self.flip);
        self.scaling = Some(Scaling { filter, mirrored });
        self.scaled = len;
        self.window_start = 0;
        self.window_len = len;
        self.content_start = 0;
        self.content_end = i64::from(len);
        self.beyond = PaddingMode::Constant;
    }

    /// The canvas is mirrored.
    pub(super) fn flip(&mut self) {
        self.flip = !self.flip;
    }

    /// Sources of the canvas's positions, for an input that lies mirrored in memory if `mirrored`.
    pub(super) fn axis(&self, mirrored: bool) -> Axis {
        if self.beyond != PaddingMode::Constant {
            let positions = (self.window_start..self.window_end()).map(|at| self.inside(at));
            let mut sources: Vec<u32> = positions
                .map(|source| if mirrored { self.input - 1 - source } else { source })
                .collect();
            if self.flip {
                sources.reverse();
            }
            return Axis { out_len: self.window_len, content_start: 0, taps: Taps::Copy(sources) };
        }
        let start = self.window_start.clamp(self.content_start, self.content_end);
        let end = self.window_end().clamp(start, self.content_end);
        let before = if self.flip { self.window_end() - end } else { start - self.window_start };
        let range = position(start)..position(end);
        let before = if range.is_empty() { 0 } else { before };
        let taps =
            if range.is_empty() { Taps::Copy(Vec::new()) } else { self.taps(range, mirrored) };
        Axis {
            out_len: self.window_len,
            content_start: u32::try_from(before).expect("content lies inside the canvas"),
            taps,
        }
    }

    /// The input position that the canvas shows at a position, which may lie beyond the content.
    fn inside(&self, at: i64) -> u32 {
        let (first, last) = (self.content_start, self.content_end - 1);
        let inside = match self.beyond {
            PaddingMode::Reflect if at < first => 2 * first - at,
            PaddingMode::Reflect if at > last => 2 * last - at,
            PaddingMode::Symmetric if at < first => 2 * first - at - 1,
            PaddingMode::Symmetric if at > last => 2 * last - at + 1,
            // Clamped below; or within.
            _ => at,
        };
        u32::try_from(inside.clamp(first, last)).expect("image positions are not negative")
    }

    fn taps(&self, range: std::ops::Range<usize>, mirrored: bool) -> Taps {
        match self.scaling {
            Some(scaling) if !scaling.filter.is_nearest() => {
                let mut table = scaling.filter.table(self.crop_len, self.scaled).slice(range);
                if scaling.mirrored {
                    table.reverse_inputs(self.crop_len);
                }
                table.shift(|start| start + self.crop_start);
                if self.flip {
                    table.reverse_outputs();
                }
                if mirrored {
                    table.reverse_inputs(self.input);
                }
                Taps::Weighted(table)
            }
            scaling => {
                let all = match scaling {
                    Some(Scaling { filter: Filter::Resample { interpolation, .. }, .. }) => {
                        nearest(self.crop_len, self.scaled, interpolation)
                    }
                    Some(Scaling { filter: Filter::Gaussian { .. }, .. }) | None => {
                        (0..self.scaled).collect()
                    }
                };
                let crop_mirrored = scaling.is_some_and(|scaling| scaling.mirrored);
                let stored = |&source: &u32| {
                    let source = if crop_mirrored { self.crop_len - 1 - source } else { source };
                    let source = source + self.crop_start;
                    if mirrored { self.input - 1 - source } else { source }
                };
                let mut sources: Vec<u32> = all[range].iter().map(stored).collect();
                if self.flip {
                    sources.reverse();
                }
                Taps::Copy(sources)
            }
        }
    }
}

impl Filter {
    fn is_nearest(self) -> bool {
        match self {
            Self::Resample { interpolation, .. } => interpolation.is_nearest(),
            Self::Gaussian { .. } => false,
        }
    }

    /// Of a filter that mixes.
    fn table(self, input: u32, output: u32) -> Table {
        match self {
            Self::Resample { interpolation, antialias } => {
                Table::new(input, output, interpolation, antialias)
            }
            Self::Gaussian { kernel, sigma } => Table::gaussian(input, kernel, sigma),
        }
    }
}

fn position(scaled: i64) -> usize {
    usize::try_from(scaled).expect("image positions are not negative")
}

impl Axis {
    /// The axis for an input whose first `by` positions were left out.
    pub(super) fn shifted(mut self, by: u32) -> Self {
        match &mut self.taps {
            Taps::Copy(sources) => sources.iter_mut().for_each(|source| *source -= by),
            Taps::Weighted(table) => table.shift(|start| start - by),
        }
        self
    }
}
