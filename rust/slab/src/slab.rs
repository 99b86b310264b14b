//! A batch while it is written: slots are given out, come back, and the whole is sealed.

use crate::block::allocate;
use crate::plan::{Place, places};
use crate::sync::{Arc, AtomicU8, Ordering, Witness};
use crate::{Allocator, Block, Error, SealedSlab};
use forebay_core::FieldSpec;
use forebay_core::ports::{DeviceMemory, Slot, SlotMemory};
use std::sync::{Mutex, OnceLock, PoisonError};

/// The slot's bytes belong to nobody and hold nothing.
const FREE: u8 = 0;
/// A [`SlabSlot`] has them.
const LENT: u8 = 1;
/// They are final.
const WRITTEN: u8 = 2;

/// The memory of one batch of `samples` samples, being written.
pub struct Slab {
    memory: Arc<Memory>,
    samples: usize,
    /// Ragged fields' rows by field and sample; empty for other fields.
    ragged: Vec<Mutex<Vec<Option<Vec<u8>>>>>,
}

/// What slots share with their slab.
pub(crate) struct Memory {
    block: OnceLock<Block>,
    bytes: usize,
    allocator: std::sync::Arc<dyn Allocator>,
    /// By field; `None` for those in host memory.
    pub(crate) device: Vec<Option<std::sync::Arc<dyn DeviceMemory>>>,
    pub(crate) places: Vec<Place>,
    /// Slots by field and sample; empty for ragged fields.
    slots: Vec<Vec<SlotState>>,
}

impl Memory {
    /// The batch's block.
    ///
    /// # Panics
    /// It was not taken yet: see [`Slab::reserve`].
    pub(crate) fn block(&self) -> &Block {
        self.block.get().expect("memory is reserved before it is written")
    }

    /// Takes the batch's block, if that has not happened.
    fn reserve(&self) -> Result<(), Error> {
        if self.block.get().is_none() {
            let block = allocate(&*self.allocator, self.bytes)?;
            // Another thread may have been faster; its block is as good.
            drop(self.block.set(block));
        }
        Ok(())
    }

    pub(crate) fn allocator(&self) -> &dyn Allocator {
        &*self.allocator
    }
}

impl std::fmt::Debug for Memory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memory").field("block", &self.block.get()).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct SlotState {
    state: AtomicU8,
    witness: Witness,
}

impl Slab {
    /// Prepares a batch of `samples` samples; takes its device memory, and its host memory if the
    /// allocator is eager.
    ///
    /// # Errors
    /// The batch is too large, or there is not enough memory.
    pub fn new(
        specs: &[FieldSpec],
        samples: usize,
        allocator: std::sync::Arc<dyn Allocator>,
    ) -> Result<Self, Error> {
        let (places, bytes) = places(specs, samples)?;
        let eager = allocator.eager();
        let slots = places
            .iter()
            .map(|place| if place.spec.ragged { 0 } else { samples })
            .map(|slots| (0..slots).map(|_| SlotState::default()).collect())
            .collect();
        let ragged = places
            .iter()
            .map(|place| Mutex::new(vec![None; if place.spec.ragged { samples } else { 0 }]))
            .collect();
        let device = places
            .iter()
            .map(|Place { spec, item, .. }| {
                let bytes = item * samples;
                spec.on_device.then(|| on_device(&*allocator, spec, samples, bytes)).transpose()
            })
            .collect::<Result<_, _>>()?;
        let memory = Memory { block: OnceLock::new(), bytes, allocator, device, places, slots };
        if eager {
            memory.reserve()?;
        }
        Ok(Self { memory: Arc::new(memory), samples, ragged })
    }

    /// Takes the batch's memory unless that has happened; whoever writes through slots calls it
    /// first. Any thread may.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn reserve(&self) -> Result<(), Error> {
        self.memory.reserve()
    }

    /// Exclusive access to one sample of a field of fixed size, until the slot is dropped. A slot
    /// whose memory was asked for counts as written then; untouched, it may be given out again.
    ///
    /// # Errors
    /// There is no such slot, or it was given out before.
    pub fn slot(&self, field: usize, sample: usize) -> Result<SlabSlot, Error> {
        let place = self.place(field, sample)?;
        if place.spec.ragged {
            return Err(Error::Ragged { path: place.spec.path.clone() });
        }
        self.memory.slots[field][sample]
            .state
            .compare_exchange(FREE, LENT, Ordering::Acquire, Ordering::Relaxed)
            .map_err(|_| taken(place, sample))?;
        Ok(SlabSlot { memory: Arc::clone(&self.memory), field, sample, touched: false })
    }

    /// Writes one sample's value: exactly one item, or any number of rows of a ragged field.
    ///
    /// # Errors
    /// The value has the wrong length, or the sample was written before.
    pub fn put(&self, field: usize, sample: usize, value: &[u8]) -> Result<(), Error> {
        let Place { spec, item, .. } = self.place(field, sample)?;
        let fits = if spec.ragged {
            *item > 0 && value.len().is_multiple_of(*item)
        } else {
            value.len() == *item
        };
        if !fits {
            return Err(Error::WrongLength {
                path: spec.path.clone(),
                sample,
                expected: *item,
                ragged: spec.ragged,
                got: value.len(),
            });
        }
        if spec.on_device {
            return Err(Error::OnDevice { path: spec.path.clone() });
        }
        if !spec.ragged {
            self.reserve()?;
            self.slot(field, sample)?.bytes().copy_from_slice(value);
            return Ok(());
        }
        let mut rows = self.rows(field);
        if rows[sample].is_some() {
            return Err(taken(&self.memory.places[field], sample));
        }
        rows[sample] = Some(value.to_vec());
        Ok(())
    }

    /// Closes the batch: ragged values are joined, and nothing is written from then on (MEM-2).
    ///
    /// # Errors
    /// A sample of some field was not written, or its slot not returned; or there is no memory
    /// for the ragged values.
    pub fn seal(self) -> Result<std::sync::Arc<SealedSlab>, Error> {
        self.reserve()?;
        for (place, slots) in self.memory.places.iter().zip(&self.memory.slots) {
            for (sample, slot) in slots.iter().enumerate() {
                // Pairs with the release when the slot was dropped.
                if slot.state.load(Ordering::Acquire) != WRITTEN {
                    return Err(unwritten(place, sample));
                }
                slot.witness.read();
            }
        }
        let mut values = Vec::new();
        for (field, place) in self.memory.places.iter().enumerate() {
            let rows = std::mem::take(&mut *self.rows(field));
            let rows = rows
                .into_iter()
                .enumerate()
                .map(|(sample, rows)| rows.ok_or_else(|| unwritten(place, sample)));
            values.push(rows.collect::<Result<Vec<_>, _>>()?);
        }
        SealedSlab::new(self.memory, self.samples, &values).map(std::sync::Arc::new)
    }

    fn place(&self, field: usize, sample: usize) -> Result<&Place, Error> {
        self.memory
            .places
            .get(field)
            .filter(|_| sample < self.samples)
            .ok_or(Error::NoSuchSlot { field, sample })
    }

    fn rows(&self, field: usize) -> std::sync::MutexGuard<'_, Vec<Option<Vec<u8>>>> {
        self.ragged[field].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Slab {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slab")
            .field("samples", &self.samples)
            .field("memory", &self.memory)
            .finish_non_exhaustive()
    }
}

/// Device memory that is as large as promised.
fn on_device(
    allocator: &dyn Allocator,
    spec: &FieldSpec,
    samples: usize,
    bytes: usize,
) -> Result<std::sync::Arc<dyn DeviceMemory>, Error> {
    let memory = allocator.allocate_on_device(spec, samples)?;
    if memory.bytes() < bytes {
        let address = usize::try_from(memory.address()).unwrap_or(usize::MAX);
        return Err(Error::BadBlock { expected: bytes, align: 1, got: memory.bytes(), address });
    }
    Ok(memory)
}

fn taken(place: &Place, sample: usize) -> Error {
    Error::Taken { path: place.spec.path.clone(), sample }
}

fn unwritten(place: &Place, sample: usize) -> Error {
    Error::Unwritten { path: place.spec.path.clone(), sample }
}

/// Exclusive access to the bytes of one sample of one field; dropping it returns them.
///
/// Whoever has the value may write as often as needed, so a failed sample is retried with the
/// same slot.
#[derive(Debug)]
pub struct SlabSlot {
    memory: Arc<Memory>,
    field: usize,
    sample: usize,
    touched: bool,
}

impl SlabSlot {
    fn bytes(&mut self) -> &mut [u8] {
        self.touched = true;
        self.state().witness.write();
        let Place { item, offset, .. } = self.memory.places[self.field];
        // SAFETY: `places` laid out disjoint ranges inside the block, which `self.memory` keeps
        // alive. The slot's state is LENT: no other `SlabSlot` names this range, sealing is
        // refused, and `&mut self` excludes a second slice.
        unsafe {
            let start = self.memory.block().ptr().add(offset + self.sample * item);
            std::slice::from_raw_parts_mut(start.as_ptr(), item)
        }
    }

    fn state(&self) -> &SlotState {
        &self.memory.slots[self.field][self.sample]
    }
}

impl Slot for SlabSlot {
    fn memory(&mut self) -> SlotMemory<'_> {
        let Place { item, .. } = self.memory.places[self.field];
        if self.memory.device[self.field].is_none() {
            return SlotMemory::Host(self.bytes());
        }
        self.touched = true;
        self.state().witness.write();
        let memory = self.memory.device[self.field].as_deref().expect("looked at above");
        SlotMemory::Device { memory, offset: self.sample * item, bytes: item }
    }
}

impl Drop for SlabSlot {
    fn drop(&mut self) {
        let state = if self.touched { WRITTEN } else { FREE };
        self.state().state.store(state, Ordering::Release);
    }
}

/// Fills a slot with zeros: what a skipped sample holds (ERR-1).
///
/// # Errors
/// The device failed.
pub fn zero(slot: &mut dyn Slot) -> Result<(), Error> {
    match slot.memory() {
        SlotMemory::Host(bytes) => {
            bytes.fill(0);
            Ok(())
        }
        SlotMemory::Device { memory, offset, bytes } => {
            memory.zero(offset, bytes).map_err(|fault| Error::Clear { reason: fault.reason })
        }
    }
}
