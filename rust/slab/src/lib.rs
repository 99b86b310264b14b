//! The memory of one batch: aligned, disjoint, write-once slots that may cross threads.
//!
//! **Invariants**
//! - A slot is written by at most one owner at a time, and never again once it was returned
//!   written; the slots of a slab never overlap.
//! - MEM-2: a sealed slab is not written again until its last owner is gone; only then does its
//!   memory return to the allocator.
//! - Every size is checked before memory is taken.
//!
//! ```no_run
//! use forebay_core::{DType, FieldSpec, Layout};
//! use forebay_slab::{Pageable, Slab};
//! use std::sync::Arc;
//! # fn main() -> Result<(), forebay_slab::Error> {
//! let label = FieldSpec {
//!     path: "label".into(), dtype: DType::Int64, shape: vec![], ragged: false,
//!     layout: Layout::Contiguous, on_device: false,
//! };
//! let slab = Slab::new(&[label], 2, Arc::new(Pageable::default()))?;
//! slab.put(0, 0, &7_i64.to_ne_bytes())?;
//! slab.put(0, 1, &8_i64.to_ne_bytes())?;
//! let sealed = slab.seal()?;
//! assert_eq!(sealed.bytes(0)[..8], 7_i64.to_ne_bytes());
//! # Ok(())
//! # }
//! ```

mod block;
mod error;
mod plan;
mod pool;
mod sealed;
mod slab;
mod sync;

pub use block::{Allocator, Block};
pub use error::Error;
pub use plan::{shape_and_strides, slab_bytes};
pub use pool::Pageable;
pub use sealed::{SealedField, SealedSlab, Values, View};
pub use slab::{Slab, SlabSlot, zero};
