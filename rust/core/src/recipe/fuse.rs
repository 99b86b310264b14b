//! Fusion: steps become passes, as few as keep every pixel what separate steps would give.
//!
//! A pass is one resample, then colour, then a write. A step that does not commute with what is
//! pending closes the pass: a resize after a resize, after colour or over fill; colour over fill;
//! contrast, which needs the mean of everything before it; what takes some pixels of all.

use super::line::Line;
use super::resolve::{Step, Units};
use crate::{
    Axis, ColorOp, Erase, Fill, Gather, ImagePlan, Layer, Mixture, Orientation, Pass, Reduce,
    Region, Size, Taps, Write,
};

/// The plan that applies `steps` to an image stored with `size`.
pub(super) fn fuse(
    steps: &[Step],
    size: Size,
    orientation: Orientation,
    write: Write,
) -> ImagePlan {
    let upright = orientation.upright(size);
    let mut builder = Builder::new(upright, orientation);
    for step in steps {
        builder.apply(step, &write);
    }
    builder.finish(size, write)
}

/// Passes from an image of `size` that is there as a whole.
fn layer(steps: &[Step], size: Size, write: &Write) -> Vec<Pass> {
    let mut builder = Builder::new(size, Orientation::default());
    for step in steps {
        builder.apply(step, write);
    }
    builder.close(None);
    // What was closed for a gather alone.
    if builder.passes.len() > 1 && builder.passes[0].is_identity(size) {
        builder.passes.remove(0);
    }
    builder.passes
}

struct Builder {
    passes: Vec<Pass>,
    region: Region,
    orientation: Orientation,
    /// Of the pending pass.
    mixture: Option<Mixture>,
    gather: Option<Gather>,
    x: Line,
    y: Line,
    fill: [u8; 3],
    color: Vec<ColorOp>,
    erase: Vec<Erase>,
}

impl Builder {
    fn new(upright: Size, orientation: Orientation) -> Self {
        Self {
            passes: Vec::with_capacity(1),
            region: Region::whole(upright),
            orientation,
            mixture: None,
            gather: None,
            x: Line::new(upright.width),
            y: Line::new(upright.height),
            fill: [0; 3],
            color: Vec::new(),
            erase: Vec::new(),
        }
    }

    fn shows_fill(&self) -> bool {
        self.x.shows_fill() || self.y.shows_fill()
    }

    fn apply(&mut self, step: &Step, write: &Write) {
        match *step {
            Step::Crop { x, y, size, fill } => {
                let pads = self.x.crop_pads(x, size.width) || self.y.crop_pads(y, size.height);
                let fits = self.x.can_crop(x, size.width) && self.y.can_crop(y, size.height);
                if !fits || (pads && self.shows_fill() && fill != self.fill) {
                    self.close(None);
                }
                if pads {
                    self.fill = fill;
                }
                self.x.crop(x, size.width);
                self.y.crop(y, size.height);
            }
            Step::Pad { sides: [left, top, right, bottom], mode } => {
                if !self.x.can_pad() || !self.y.can_pad() {
                    self.close(None);
                }
                self.x.pad(left, right, mode);
                self.y.pad(top, bottom, mode);
            }
            Step::Resize { size, interpolation, antialias } => {
                // Not even with a resize of the other direction alone, whose pixels were rounded.
                let is_scaled = self.x.is_scaled() || self.y.is_scaled();
                let joins = self.color.is_empty()
                    && !is_scaled
                    && self.x.can_resize(size.width)
                    && self.y.can_resize(size.height);
                let resizes = size != Size { width: self.x.len(), height: self.y.len() };
                if resizes && !joins {
                    self.close(None);
                }
                self.x.resize(size.width, interpolation, antialias);
                self.y.resize(size.height, interpolation, antialias);
            }
            Step::Gather(gather) => {
                self.close(None);
                self.gather = Some(gather);
                let size = gather.size(Size { width: self.x.len(), height: self.y.len() });
                (self.x, self.y) = (Line::new(size.width), Line::new(size.height));
            }
            Step::Mix { weight, ref layers } => {
                self.close(None);
                let size = Size { width: self.x.len(), height: self.y.len() };
                let layers = layers.iter().map(|(weight, steps)| Layer {
                    weight: *weight,
                    passes: layer(steps, size, write),
                });
                self.mixture = Some(Mixture { weight, layers: layers.collect() });
            }
            Step::Blur { kernel: [across, down], sigma } => {
                let joins = self.color.is_empty() && self.x.can_scale() && self.y.can_scale();
                if !joins {
                    self.close(None);
                }
                self.x.blur(across, sigma);
                self.y.blur(down, sigma);
            }
            // Only conversions follow.
            Step::Erase { region, fill, units } => {
                let final_value = |value: f32, channel| match units {
                    Units::Pixels if write.scale => {
                        write.normalized(value * (1.0 / 255.0), channel)
                    }
                    Units::Pixels | Units::Floats => write.normalized(value, channel),
                    Units::Final => value,
                };
                let fill = match fill {
                    Fill::Value(value) => {
                        Fill::Value([0, 1, 2].map(|channel| final_value(value[channel], channel)))
                    }
                    noise @ Fill::Noise { .. } => noise,
                };
                self.erase.push(Erase { region, fill });
            }
            Step::FlipX => self.x.flip(),
            Step::FlipY => self.y.flip(),
            Step::Color(op) => {
                let needs = op.needs();
                if needs.is_some() || self.shows_fill() {
                    self.close(needs);
                }
                self.color.push(op);
            }
        }
    }

    /// Ends the pending pass; the next one begins with its result.
    fn close(&mut self, reduce: Option<Reduce>) {
        let first = self.passes.is_empty();
        let orientation = if first { self.orientation } else { Orientation::default() };
        let mut x = self.x.axis(orientation.flip_x);
        let mut y = self.y.axis(orientation.flip_y);
        if first {
            // An image is decoded to one pixel at least.
            let [across, down] = [&x, &y].map(|axis| axis.extent().unwrap_or(0..1));
            let (left, top) = (across.start, down.start);
            self.region =
                Region { x: left, y: top, width: across.end - left, height: down.end - top };
            (x, y) = (x.shifted(left), y.shifted(top));
        }
        let size = Size { width: x.out_len, height: y.out_len };
        let color = std::mem::take(&mut self.color);
        let (mixture, gather) = (self.mixture.take(), self.gather.take());
        self.passes.push(Pass { mixture, gather, x, y, fill: self.fill, color, reduce });
        (self.x, self.y) = (Line::new(size.width), Line::new(size.height));
    }

    fn finish(mut self, size: Size, write: Write) -> ImagePlan {
        self.close(None);
        let Region { x, y, width, height } = self.region;
        let transpose = self.orientation.transpose;
        let region = if transpose {
            Region { x: y, y: x, width: height, height: width }
        } else {
            self.region
        };
        debug_assert!(region.fits(size), "{region:?} must lie inside the image of {size}");
        ImagePlan { region, transpose, passes: self.passes, write, erase: self.erase }
    }
}

impl Pass {
    /// Whether it leaves an image of `size` as it is, and nobody wants to know anything of it.
    fn is_identity(&self, size: Size) -> bool {
        let keeps = |axis: &Axis, len: u32| {
            axis.out_len == len
                && matches!(&axis.taps, Taps::Copy(from) if from.iter().copied().eq(0..len))
        };
        self.mixture.is_none()
            && self.gather.is_none()
            && self.reduce.is_none()
            && self.color.is_empty()
            && keeps(&self.x, size.width)
            && keeps(&self.y, size.height)
    }
}
