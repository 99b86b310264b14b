//! A finished batch: what becomes tensors.

use crate::block::{ALIGN, allocate};
use crate::plan::{Place, shape_and_strides};
use crate::slab::Memory;
use crate::sync::Arc;
use crate::{Allocator, Block, Error};
use forebay_core::ports::DeviceMemory;
use forebay_core::{DType, FieldSpec, Layout};
use std::ptr::NonNull;

/// Host memory as a tensor sees it.
#[derive(Debug, Clone)]
pub struct View {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<usize>,
    ptr: NonNull<u8>,
    bytes: usize,
}

impl View {
    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape, the batch dimension (or all rows of a ragged field) first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Strides in elements.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// First byte, aligned to 64; valid while the slab's `Arc` lives. Whoever lets others write
    /// through it (tensors are mutable) must not call the slab's reading functions any more.
    pub fn ptr(&self) -> NonNull<u8> {
        self.ptr
    }

    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

// SAFETY: a view describes memory and reads none; using its address takes unsafe code.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

/// Where a field's elements lie.
#[derive(Debug, Clone)]
pub enum Values {
    /// In host memory.
    Host(View),
    /// In a device's memory; perhaps still being written, as its renderer knows.
    Device(std::sync::Arc<dyn DeviceMemory>),
}

/// One field of a sealed batch.
#[derive(Debug, Clone)]
pub struct SealedField {
    /// What the field was asked to be.
    pub spec: FieldSpec,
    /// Its elements.
    pub values: Values,
    /// Where each sample's rows begin and the last one's end: `samples + 1` int64, for ragged
    /// fields.
    pub offsets: Option<View>,
}

/// The memory of a finished batch; the last owner's drop gives it back.
#[derive(Debug)]
pub struct SealedSlab {
    fields: Vec<SealedField>,
    samples: usize,
    _memory: Arc<Memory>,
    _ragged: Option<Block>,
}

impl SealedSlab {
    /// Joins the ragged fields' rows, `values` by field and sample, in a block of their own.
    pub(crate) fn new(
        memory: Arc<Memory>,
        samples: usize,
        values: &[Vec<Vec<u8>>],
    ) -> Result<Self, Error> {
        let mut ragged = RaggedBlock::new(&memory.places, values, samples, memory.allocator())?;
        let fields = memory
            .places
            .iter()
            .zip(values)
            .enumerate()
            .map(|(field, (place, values))| match &mut ragged {
                Some(ragged) if place.spec.ragged => ragged.write(place, values),
                _ => fixed_field(&memory, field, samples),
            })
            .collect();
        Ok(Self { fields, samples, _memory: memory, _ragged: ragged.map(|ragged| ragged.block) })
    }

    /// The fields, in the order of the specs.
    pub fn fields(&self) -> &[SealedField] {
        &self.fields
    }

    /// Samples in the batch.
    pub fn samples(&self) -> usize {
        self.samples
    }

    /// The elements of field number `field`; see [`View::ptr`] for when this may be called.
    ///
    /// # Panics
    /// There is no such field, or it lies on a device.
    pub fn bytes(&self, field: usize) -> &[u8] {
        match &self.fields[field].values {
            Values::Host(view) => self.read(view),
            Values::Device(_) => panic!("{}: on a device", self.fields[field].spec.path),
        }
    }

    /// The offsets of a ragged field, in rows.
    ///
    /// # Panics
    /// There is no such field.
    pub fn offsets(&self, field: usize) -> Option<Vec<i64>> {
        let offsets = self.read(self.fields[field].offsets.as_ref()?);
        let (offsets, _) = offsets.as_chunks::<8>();
        Some(offsets.iter().copied().map(i64::from_ne_bytes).collect())
    }

    #[expect(clippy::unused_self, reason = "the result borrows the slab that owns the memory")]
    fn read(&self, view: &View) -> &[u8] {
        // SAFETY: the view lies inside a block that `self` owns, every byte of it was written
        // before sealing, and nothing in this crate writes afterwards; those who lend the
        // address to writers keep the rule at `View::ptr`.
        unsafe { std::slice::from_raw_parts(view.ptr.as_ptr(), view.bytes) }
    }
}

fn view(spec: &FieldSpec, rows: usize, ptr: NonNull<u8>, bytes: usize) -> View {
    let (shape, strides) = shape_and_strides(spec, rows);
    View { dtype: spec.dtype, shape, strides, ptr, bytes }
}

fn fixed_field(memory: &Memory, field: usize, samples: usize) -> SealedField {
    let place = &memory.places[field];
    let values = if let Some(device) = &memory.device[field] {
        Values::Device(std::sync::Arc::clone(device))
    } else {
        // SAFETY: `places` put the field's offset inside the block.
        let ptr = unsafe { memory.block().ptr().add(place.offset) };
        Values::Host(view(&place.spec, samples, ptr, place.item * samples))
    };
    SealedField { spec: place.spec.clone(), values, offsets: None }
}

/// The block that all ragged fields' values and offsets share.
struct RaggedBlock {
    block: Block,
    used: usize,
}

impl RaggedBlock {
    fn new(
        places: &[Place],
        values: &[Vec<Vec<u8>>],
        samples: usize,
        allocator: &dyn Allocator,
    ) -> Result<Option<Self>, Error> {
        let mut bytes = Some(0_usize);
        for (_, values) in places.iter().zip(values).filter(|(p, _)| p.spec.ragged) {
            let padded = values
                .iter()
                .try_fold(0_usize, |sum, rows| sum.checked_add(rows.len()))
                .and_then(|sum| sum.checked_next_multiple_of(ALIGN));
            let offsets = (samples + 1)
                .checked_mul(size_of::<i64>())
                .and_then(|sum| sum.checked_next_multiple_of(ALIGN));
            bytes = bytes
                .zip(padded.zip(offsets))
                .and_then(|(sum, (a, b))| sum.checked_add(a)?.checked_add(b));
        }
        let Some(first) = places.iter().find(|place| place.spec.ragged) else {
            return Ok(None);
        };
        let bytes =
            bytes.ok_or_else(|| Error::TooLarge { path: first.spec.path.clone(), samples })?;
        let block = allocate(allocator, bytes)?;
        Ok(Some(Self { block, used: 0 }))
    }

    fn write(&mut self, place: &Place, values: &[Vec<u8>]) -> SealedField {
        let item = place.item.max(1);
        let mut rows = 0;
        let mut offsets = vec![0_u8; size_of::<i64>()];
        for value in values {
            rows += value.len() / item;
            let end = i64::try_from(rows).expect("rows in memory fit 63 bits");
            offsets.extend_from_slice(&end.to_ne_bytes());
        }
        let joined = values.concat();
        let offsets_spec = FieldSpec {
            path: place.spec.path.clone(),
            dtype: DType::Int64,
            shape: vec![],
            ragged: false,
            layout: Layout::Contiguous,
            on_device: false,
        };
        let values_at = self.append(&joined);
        let offsets_at = self.append(&offsets);
        SealedField {
            spec: place.spec.clone(),
            values: Values::Host(view(&place.spec, rows, values_at, joined.len())),
            offsets: Some(view(&offsets_spec, values.len() + 1, offsets_at, offsets.len())),
        }
    }

    /// Copies `bytes` to the next aligned place.
    fn append(&mut self, bytes: &[u8]) -> NonNull<u8> {
        let end = self.used + bytes.len();
        assert!(end <= self.block.len(), "`new` summed the same lengths");
        // SAFETY: the range was just checked; the block is not shared yet, and `bytes` lies
        // outside of it.
        let start = unsafe {
            let start = self.block.ptr().add(self.used);
            start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
            start
        };
        self.used = end.next_multiple_of(ALIGN);
        start
    }
}
