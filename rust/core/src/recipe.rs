//! Recipes: the user's list of transforms, as data, and how it becomes a plan per sample.

use crate::ports::Fault;
use crate::rng::EpochKey;
use crate::{FieldSpec, ImageMeta, ImagePlan, Record, Schema};
use std::sync::Arc;

/// What is done to one field of one sample.
#[derive(Debug, Clone)]
pub enum FieldPlan {
    /// Decode and render.
    Image(Arc<ImagePlan>),
    /// Final elements, computed on the host (boxes, labels): one item's bytes, or the rows of a
    /// ragged field.
    Elements(Vec<u8>),
}

/// A recipe that was checked against a schema.
pub trait Planner: Send + Sync {
    /// The fields of a batch, one for each field of the schema.
    fn specs(&self) -> &[FieldSpec];

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
}
