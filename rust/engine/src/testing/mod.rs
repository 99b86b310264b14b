//! Fakes of every port, for tests: small, deterministic, and able to misbehave on demand.
//!
//! Records hold two images, a mask, up to 50 boxes and a label. What ends up in a slot depends
//! on the record, on the position's draws and on nothing else, so that whole epochs can be
//! compared byte for byte.

mod backends;
mod device;
mod source;

pub use backends::{BatchRenderer, FailingRenderer, FakeDecoder, FakeRenderer, Pace, PixelRoute};
pub use device::{FakeDevice, FakeMemory};
pub use source::{Bad, Delivery, FakeSource, Gate};

use forebay_core::ports::{Fault, Stage};
use forebay_core::recipe::{FieldPlan, Planner};
use forebay_core::rng::EpochKey;
use forebay_core::{
    Axis, Blend, Channels, DType, FieldSpec, ImageMeta, ImagePlan, Layout, Mix, Mixing, Pass,
    Record, Region, Schema, Taps, Value, Write,
};
use std::sync::Arc;

/// A recipe that crops at random and shifts boxes by what it drew.
#[derive(Debug)]
pub struct FakePlanner {
    specs: Vec<FieldSpec>,
    mixes: u32,
}

impl FakePlanner {
    /// Images of `side` squared; the mask has one channel.
    pub fn new(side: usize) -> Self {
        let spec = |path: &str, dtype, shape, ragged, layout| FieldSpec {
            path: path.to_owned(),
            dtype,
            shape,
            ragged,
            layout,
            on_device: false,
        };
        let chw = vec![3, side, side];
        Self {
            mixes: 0,
            specs: vec![
                spec("left", DType::UInt8, chw.clone(), false, Layout::Contiguous),
                spec("right", DType::UInt8, chw, false, Layout::ChannelsLast),
                spec("mask", DType::UInt8, vec![side, side], false, Layout::Contiguous),
                spec("boxes", DType::Float32, vec![4], true, Layout::Contiguous),
                spec("label", DType::Int64, vec![], false, Layout::Contiguous),
            ],
        }
    }

    /// Images and masks lie on a device.
    #[must_use]
    pub fn on_device(mut self) -> Self {
        self.specs[..3].iter_mut().for_each(|spec| spec.on_device = true);
        self
    }

    /// Images of a batch are mixed, `mixes` times; the weights are drawn.
    #[must_use]
    pub fn mixing(self, mixes: u32) -> Self {
        Self { mixes, ..self }
    }
}

impl Planner for FakePlanner {
    fn specs(&self) -> &[FieldSpec] {
        &self.specs
    }

    fn plan(
        &self,
        _schema: &Schema,
        record: Record,
        metas: &[Option<Arc<ImageMeta>>],
        key: EpochKey,
        position: u64,
    ) -> Result<Vec<FieldPlan>, Fault> {
        let mut draws = key.draws(position, 0, 0);
        let shift = draws.below(64);
        let plan = |(value, meta): (Value, &Option<Arc<ImageMeta>>)| match (value, meta) {
            (Value::Encoded(_), Some(meta)) => Ok(FieldPlan::Image(Arc::new(plan_of(meta, shift)))),
            (Value::Boxes(boxes), None) => {
                let shifted = boxes.iter().flatten().map(|x| x + shift as f32);
                Ok(FieldPlan::Elements(shifted.flat_map(f32::to_ne_bytes).collect()))
            }
            (Value::Int(label), None) if label >= 0 => {
                Ok(FieldPlan::Elements(label.to_ne_bytes().to_vec()))
            }
            _ => Err(Fault::new(Stage::Transform, "the fake planner refuses this sample")),
        };
        record.values.into_iter().zip(metas).map(plan).collect()
    }

    fn mixes(&self, key: EpochKey, position: u64) -> Vec<Mixing> {
        let mut draws = key.draws(position, 1, 0);
        let mut mixing = |_| {
            let weight = draws.unit();
            Mixing { mix: Mix::Blend(Blend::new(weight)), weight }
        };
        (0..self.mixes).map(&mut mixing).collect()
    }
}

/// The plan that carries what was drawn in the place of its region.
fn plan_of(meta: &ImageMeta, shift: u64) -> ImagePlan {
    let x = u32::try_from(shift).unwrap_or(0) % meta.size.width;
    let axis = || Axis { out_len: 1, content_start: 0, taps: Taps::Copy(vec![0]) };
    ImagePlan {
        erase: vec![],
        region: Region { x, y: 0, width: meta.size.width - x, height: meta.size.height },
        transpose: false,
        passes: vec![Pass {
            mixture: None,
            gather: None,
            x: axis(),
            y: axis(),
            fill: [0; 3],
            color: vec![],
            reduce: None,
        }],
        write: Write {
            channels: Channels::Rgb,
            dtype: DType::UInt8,
            layout: Layout::Contiguous,
            scale: false,
            normalize: None,
        },
    }
}
