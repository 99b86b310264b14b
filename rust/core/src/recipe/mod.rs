//! Recipes: the user's list of transforms, as data, and how it becomes a plan per sample.
//!
//! `spec` is what the user wrote, `resolve` draws every random number, `fuse` turns the drawn
//! steps into as few passes as are exact. `batch` is what is done to a batch's images together.
//!
//! **Invariants**
//! - RNG-1: every draw is keyed by the sample's position, the transform's place and the field's
//!   draw group; fields of one group and size move together.
//! - The training and the validation recipe are one pass each.

mod batch;
mod boxes;
mod check;
mod direct;
mod fuse;
mod line;
mod resolve;
mod spec;

pub use batch::BatchTransform;
pub use check::RecipeError;
pub use direct::{ResizedCrop, whole};
pub use spec::{ErasedBy, Noise, PaddingMode, Policy, RecipeSpec, Transform};

use crate::ports::{Fault, Stage};
use crate::rng::EpochKey;
use crate::{
    Channels, FieldKind, FieldSpec, Gather, ImageMeta, ImagePlan, Layout, Mixing, Normalize,
    Record, Schema, Size, Value, Warp, Write,
};
use resolve::{DrawKey, Step, resolve};
use std::sync::Arc;

/// Longest side that a transform may produce: JPEG's own limit, and far from any overflow.
pub(crate) const MAX_SIDE: u32 = 65_535;

/// What is done to one field of one sample.
#[derive(Debug, Clone)]
pub enum FieldPlan {
    /// Decode and render.
    Image(Arc<ImagePlan>),
    /// Final elements, computed on the host (boxes, labels): one item's bytes, or the rows of a
    /// ragged field.
    Elements(Vec<u8>),
}

/// What the engine asks of a recipe.
pub trait Planner: Send + Sync {
    /// The fields of a batch, one for each field of the schema.
    fn specs(&self) -> &[FieldSpec];

    /// Size of the image that the recipe sees: upright, unless orientation is ignored.
    fn input_size(&self, meta: &ImageMeta) -> Size {
        meta.orientation.upright(meta.size)
    }

    /// Resolves every random draw for the sample at `position` (RNG-1). `metas` holds what the
    /// probe found for each field, `None` for those that are not encoded.
    ///
    /// # Errors
    /// The sample does not suit the recipe (a crop larger than the image, say).
    fn plan(
        &self,
        schema: &Schema,
        record: Record,
        metas: &[Option<Arc<ImageMeta>>],
        key: EpochKey,
        position: u64,
    ) -> Result<Vec<FieldPlan>, Fault>;

    /// What is done to the images of a batch once all are rendered, in order; resolves every random
    /// draw for the batch whose first sample is at `position` (RNG-1).
    fn mixes(&self, key: EpochKey, position: u64) -> Vec<Mixing> {
        let _ = (key, position);
        Vec::new()
    }
}

/// A recipe that was checked against a schema.
#[derive(Debug, Clone)]
pub struct Recipe {
    transforms: Vec<Transform>,
    batch: Vec<BatchTransform>,
    image_size: Size,
    image_write: Write,
    apply_orientation: bool,
    specs: Vec<FieldSpec>,
}

impl Recipe {
    /// Checks `spec` for batches of samples of `schema`.
    ///
    /// # Errors
    /// An argument makes no sense, or images would keep sizes of their own and cannot batch.
    pub fn new(
        spec: RecipeSpec,
        schema: &Schema,
        apply_orientation: bool,
    ) -> Result<Self, RecipeError> {
        let checked = check::check(&spec)?;
        batch::check(&spec.batch, spec.transforms.len(), checked.dtype)?;
        let image_write = Write {
            channels: spec.mode,
            dtype: checked.dtype,
            layout: spec.layout,
            scale: checked.scale,
            normalize: checked.normalize,
        };
        let specs = schema.fields.iter().map(|field| {
            let (height, width) = (checked.size.height as usize, checked.size.width as usize);
            let (dtype, shape, layout) = match field.kind {
                FieldKind::Image => {
                    (checked.dtype, vec![spec.mode.count(), height, width], spec.layout)
                }
                FieldKind::Mask => (MASK_WRITE.dtype, vec![height, width], Layout::Contiguous),
                FieldKind::Boxes | FieldKind::Tensor => {
                    (field.dtype, field.shape.clone(), Layout::Contiguous)
                }
            };
            FieldSpec {
                path: field.path.clone(),
                dtype,
                shape,
                ragged: field.ragged,
                layout,
                on_device: false,
            }
        });
        let specs = specs.collect();
        Ok(Self {
            transforms: spec.transforms,
            batch: spec.batch,
            image_size: checked.size,
            image_write,
            apply_orientation,
            specs,
        })
    }

    /// Images and masks are delivered in the renderer's device memory.
    pub fn render_on_device(&mut self, schema: &Schema) {
        for (field, spec) in schema.fields.iter().zip(&mut self.specs) {
            spec.on_device = matches!(field.kind, FieldKind::Image | FieldKind::Mask);
        }
    }

    /// Resolves every draw for one image and fuses the steps: the whole plan of a lone image.
    ///
    /// # Errors
    /// The image does not suit the recipe.
    pub fn plan_image(
        &self,
        meta: &ImageMeta,
        key: EpochKey,
        position: u64,
    ) -> Result<ImagePlan, Fault> {
        let steps = self.steps(meta, DrawKey { epoch: key, position, group: 0 })?;
        Ok(self.fuse(&steps, meta, self.image_write))
    }

    fn steps(&self, meta: &ImageMeta, key: DrawKey) -> Result<Vec<Step>, Fault> {
        let steps = resolve(&self.transforms, self.input_size(meta), key)
            .map_err(|reason| Fault::new(Stage::Transform, reason))?;
        Ok(match self.image_write.channels {
            Channels::Rgb => steps,
            Channels::Gray | Channels::Index => of_one_channel(steps),
        })
    }

    fn fuse(&self, steps: &[Step], meta: &ImageMeta, write: Write) -> ImagePlan {
        let orientation =
            if self.apply_orientation { meta.orientation } else { crate::Orientation::default() };
        fuse::fuse(steps, meta.size, orientation, write)
    }
}

const MASK_WRITE: Write = Write {
    channels: Channels::Index,
    dtype: crate::DType::UInt8,
    layout: Layout::Contiguous,
    scale: false,
    normalize: None::<Normalize>,
};

/// Without changes of colour that leave an image of one channel as it is.
fn of_one_channel(steps: Vec<Step>) -> Vec<Step> {
    let keep = |step| match step {
        Step::Color(op) if op.mixes_channels() => None,
        Step::Mix { weight, layers } => {
            let layers = layers.into_iter().map(|(weight, steps)| (weight, of_one_channel(steps)));
            Some(Step::Mix { weight, layers: layers.collect() })
        }
        other => Some(other),
    };
    steps.into_iter().filter_map(keep).collect()
}

/// Geometry of a mask: class numbers must not mix, so every resize takes the nearest pixel.
fn mask_steps(steps: &[Step]) -> Vec<Step> {
    let keep = |step: &Step| match step {
        Step::Color(_)
        | Step::Blur { .. }
        | Step::Gather(Gather::Sharpen { .. })
        | Step::Mix { .. }
        | Step::Erase { .. } => None,
        Step::Gather(Gather::Warp(warp)) => {
            Some(Step::Gather(Gather::Warp(Warp { bilinear: false, ..*warp })))
        }
        Step::Resize { size, .. } => Some(Step::Resize {
            size: *size,
            interpolation: crate::coeffs::Interpolation::Nearest,
            antialias: false,
        }),
        Step::Crop { .. } | Step::Pad { .. } | Step::FlipX | Step::FlipY => Some(step.clone()),
    };
    steps.iter().filter_map(keep).collect()
}

impl Planner for Recipe {
    fn specs(&self) -> &[FieldSpec] {
        &self.specs
    }

    fn input_size(&self, meta: &ImageMeta) -> Size {
        if self.apply_orientation { meta.orientation.upright(meta.size) } else { meta.size }
    }

    fn plan(
        &self,
        schema: &Schema,
        record: Record,
        metas: &[Option<Arc<ImageMeta>>],
        key: EpochKey,
        position: u64,
    ) -> Result<Vec<FieldPlan>, Fault> {
        let draw_key = |group| DrawKey { epoch: key, position, group };
        // The image that masks and boxes of a draw group belong to.
        let leader = |group: u16| {
            let fields = schema.fields.iter().zip(metas);
            fields
                .filter(|(field, _)| field.kind == FieldKind::Image && field.draw_group == group)
                .find_map(|(_, meta)| meta.as_ref())
        };
        let plan_field = |(i, value): (usize, Value)| {
            let field = &schema.fields[i];
            let group = field.draw_group;
            match (field.kind, value, &metas[i]) {
                (FieldKind::Image, Value::Encoded(_), Some(meta)) => {
                    let steps = self.steps(meta, draw_key(group))?;
                    Ok(FieldPlan::Image(Arc::new(self.fuse(&steps, meta, self.image_write))))
                }
                (FieldKind::Mask, Value::Encoded(_), Some(meta)) => {
                    let (upright, image) = (self.input_size(meta), leader(group));
                    if let Some(image) = image.filter(|image| self.input_size(image) != upright) {
                        let image = self.input_size(image);
                        let reason = format!("mask {} is {upright}, its image {image}", field.path);
                        return Err(Fault::new(Stage::Transform, reason));
                    }
                    let steps = mask_steps(&self.steps(meta, draw_key(group))?);
                    Ok(FieldPlan::Image(Arc::new(self.fuse(&steps, meta, MASK_WRITE))))
                }
                (FieldKind::Boxes, Value::Boxes(boxes), _) => {
                    let Some(image) = leader(group) else {
                        let reason = format!("boxes {} have no image to move with", field.path);
                        return Err(Fault::new(Stage::Transform, reason));
                    };
                    let steps = self.steps(image, draw_key(group))?;
                    let moved = boxes::apply(boxes, &steps, self.input_size(image));
                    let rows = moved.iter().flatten().flat_map(|side| side.to_ne_bytes());
                    Ok(FieldPlan::Elements(rows.collect()))
                }
                (FieldKind::Tensor, Value::Int(value), _) => {
                    Ok(FieldPlan::Elements(value.to_ne_bytes().to_vec()))
                }
                (FieldKind::Tensor, Value::Elements(bytes), _) => Ok(FieldPlan::Elements(bytes)),
                (kind, value, _) => Err(Fault::new(
                    Stage::Dataset,
                    format!("field {} is a {kind:?}, its value is {value:?}", field.path),
                )),
            }
        };
        record.values.into_iter().enumerate().map(plan_field).collect()
    }

    fn mixes(&self, key: EpochKey, position: u64) -> Vec<Mixing> {
        batch::draw(&self.batch, key, position, self.image_size)
    }
}

#[cfg(test)]
mod tests;
