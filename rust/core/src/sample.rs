//! Samples as trees of typed fields, before (records) and after (batches) decoding.
//!
//! A schema lists the leaves of the tree by path (`"image"`, `"cameras.front.image"`); records
//! hold one value per leaf, in the schema's order, so no path is looked up per sample.

use crate::ports::HostBuffer;
use crate::{DType, Layout};
use std::sync::Arc;

/// What a leaf of the sample tree is, and so how geometry and batching treat it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    /// Encoded image; becomes `(3, H, W)`.
    Image,
    /// Encoded map of class or instance numbers; becomes `(H, W)` uint8, resampled by nearest.
    Mask,
    /// Rows of `x0, y0, x1, y1` in pixels; becomes ragged `(n, 4)` float32.
    Boxes,
    /// Array of fixed element shape that geometry does not touch.
    Tensor,
}

/// One leaf of the sample tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Path of the leaf, parts joined by dots.
    pub path: String,
    /// What it is.
    pub kind: FieldKind,
    /// Fields of one draw group move together under every random transform.
    pub draw_group: u16,
    /// Element type and shape of a `Tensor`; ignored for other kinds, which have their own.
    pub dtype: DType,
    /// Shape per sample of a `Tensor`; the first dimension is free if `ragged`.
    pub shape: Vec<usize>,
    /// Rows per sample differ.
    pub ragged: bool,
    /// What a `Tensor` field holds where a bad sample was skipped (ERR-1), if its type has it.
    pub skip_value: i64,
}

impl Field {
    /// An image in draw group 0.
    pub fn image(path: &str) -> Self {
        Self::of(path, FieldKind::Image, DType::UInt8, vec![], false)
    }

    /// A mask in draw group 0.
    pub fn mask(path: &str) -> Self {
        Self::of(path, FieldKind::Mask, DType::UInt8, vec![], false)
    }

    /// Boxes in draw group 0.
    pub fn boxes(path: &str) -> Self {
        Self::of(path, FieldKind::Boxes, DType::Float32, vec![4], true)
    }

    /// One int64 per sample; -100 where a bad sample was skipped, which losses ignore by default.
    pub fn label(path: &str) -> Self {
        let field = Self::of(path, FieldKind::Tensor, DType::Int64, vec![], false);
        Self { skip_value: -100, ..field }
    }

    /// An array that geometry does not touch.
    pub fn tensor(path: &str, dtype: DType, shape: Vec<usize>, ragged: bool) -> Self {
        Self::of(path, FieldKind::Tensor, dtype, shape, ragged)
    }

    fn of(path: &str, kind: FieldKind, dtype: DType, shape: Vec<usize>, ragged: bool) -> Self {
        Self { path: path.to_owned(), kind, draw_group: 0, dtype, shape, ragged, skip_value: 0 }
    }
}

/// The leaves of a source's samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schema {
    /// In the order of a record's values.
    pub fields: Vec<Field>,
}

/// Encoded bytes, shared without copying.
#[derive(Clone)]
pub struct Bytes(Arc<dyn Owner>);

trait Owner: Send + Sync {
    fn bytes(&self) -> &[u8];

    fn memory(&self) -> Option<&dyn HostBuffer>;
}

struct Owned<T>(T);

impl<T: AsRef<[u8]> + Send + Sync> Owner for Owned<T> {
    fn bytes(&self) -> &[u8] {
        self.0.as_ref()
    }

    fn memory(&self) -> Option<&dyn HostBuffer> {
        None
    }
}

/// The first bytes of a buffer.
struct Lent(Box<dyn HostBuffer>, usize);

impl Owner for Lent {
    fn bytes(&self) -> &[u8] {
        &self.0.bytes()[..self.1]
    }

    fn memory(&self) -> Option<&dyn HostBuffer> {
        Some(&*self.0)
    }
}

impl Bytes {
    /// Takes ownership of anything that holds bytes.
    pub fn new(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Owned(owner)))
    }

    /// The first `len` bytes of memory that was lent.
    ///
    /// # Panics
    /// If it has fewer.
    pub fn lent(memory: Box<dyn HostBuffer>, len: usize) -> Self {
        assert!(len <= memory.bytes().len(), "{len} bytes of {}", memory.bytes().len());
        Self(Arc::new(Lent(memory, len)))
    }

    /// The memory that begins with these bytes, if it was lent.
    pub fn memory(&self) -> Option<&dyn HostBuffer> {
        self.0.memory()
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Bytes({})", self.len())
    }
}

/// One leaf's undecoded value.
#[derive(Debug, Clone)]
pub enum Value {
    /// An encoded image or mask.
    Encoded(Bytes),
    /// Boxes, `x0, y0, x1, y1` in pixels of the upright image.
    Boxes(Vec<[f32; 4]>),
    /// A scalar of an int64 `Tensor` field.
    Int(i64),
    /// Elements of a `Tensor` field in the field's dtype, native byte order, row-major.
    Elements(Vec<u8>),
}

impl Value {
    /// Bytes that the value holds on to, for the memory budget.
    pub fn cost(&self) -> usize {
        match self {
            Self::Encoded(bytes) => bytes.len(),
            Self::Boxes(boxes) => std::mem::size_of_val(boxes.as_slice()),
            Self::Int(_) => 0,
            Self::Elements(bytes) => bytes.len(),
        }
    }
}

/// One undecoded sample: a value for each field of the source's schema.
#[derive(Debug, Clone)]
pub struct Record {
    /// In the schema's order.
    pub values: Vec<Value>,
}

/// Memory that one field of a batch takes: what renderers write and tensors show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSpec {
    /// Path of the leaf.
    pub path: String,
    /// Element type.
    pub dtype: DType,
    /// Shape per sample; of one row if `ragged`.
    pub shape: Vec<usize>,
    /// Rows per sample differ: the field has offsets beside its values.
    pub ragged: bool,
    /// Memory order of `(C, H, W)` shapes.
    pub layout: Layout,
    /// Lies in the renderer's device memory, not in the host's.
    pub on_device: bool,
}

impl FieldSpec {
    /// Bytes of one sample, or of one row of a ragged field; `None` when that overflows.
    pub fn item_bytes(&self) -> Option<usize> {
        self.shape.iter().try_fold(self.dtype.size(), |bytes, &n| bytes.checked_mul(n))
    }
}
