//! What can go wrong with a batch's memory.

use forebay_core::{ErrorKind, HasKind};

/// An error of this crate; fields are named by their paths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size does not fit the address space.
    #[error("{path}: {samples} samples do not fit the address space")]
    TooLarge {
        /// The field.
        path: String,
        /// Samples in the batch.
        samples: usize,
    },
    /// The system has no more memory.
    #[error("cannot allocate {bytes} bytes")]
    Exhausted {
        /// How much was asked for.
        bytes: usize,
    },
    /// An allocator from outside failed.
    #[error("cannot allocate {bytes} bytes: {reason}")]
    Allocator {
        /// What kind of failure it was.
        kind: ErrorKind,
        /// How much was asked for.
        bytes: usize,
        /// What the allocator said.
        reason: String,
    },
    /// An allocator gave a block that is too small or badly aligned.
    #[error(
        "expected a block of {expected} bytes aligned to {align}, got {got} bytes at {address:#x}"
    )]
    BadBlock {
        /// How much was asked for.
        expected: usize,
        /// Which alignment is needed.
        align: usize,
        /// How much came.
        got: usize,
        /// Where it lies.
        address: usize,
    },
    /// There is no such slot.
    #[error("no slot for field {field}, sample {sample}")]
    NoSuchSlot {
        /// Number of the field.
        field: usize,
        /// Number of the sample.
        sample: usize,
    },
    /// Ragged fields have no slots, only values.
    #[error("{path}: a ragged field has no slots")]
    Ragged {
        /// The field.
        path: String,
    },
    /// The slot is with someone else, or was written.
    #[error("{path}: sample {sample} was already given out")]
    Taken {
        /// The field.
        path: String,
        /// Number of the sample.
        sample: usize,
    },
    /// A value does not have the field's size.
    #[error("{path}: sample {sample}: expected {expected} bytes{}, got {got}",
            if *.ragged { " a row" } else { "" })]
    WrongLength {
        /// The field.
        path: String,
        /// Number of the sample.
        sample: usize,
        /// Bytes of one item, or of one row.
        expected: usize,
        /// Whether any multiple would do.
        ragged: bool,
        /// Bytes of the value.
        got: usize,
    },
    /// Sealing found a slot without contents.
    #[error("{path}: sample {sample} was not written and returned")]
    Unwritten {
        /// The field.
        path: String,
        /// Number of the sample.
        sample: usize,
    },
    /// A field is to lie on a device, and the allocator has none.
    #[error("{path}: there is no device for this field")]
    NoDevice {
        /// The field.
        path: String,
    },
    /// The device could not be made to clear a slot.
    #[error("cannot clear a slot: {reason}")]
    Clear {
        /// What the device said.
        reason: String,
    },
    /// A field in device memory was to be written by the host.
    #[error("{path}: the host cannot write device memory")]
    OnDevice {
        /// The field.
        path: String,
    },
}

impl Error {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLarge { .. } | Self::Exhausted { .. } => ErrorKind::Memory,
            Self::Allocator { kind, .. } => *kind,
            Self::WrongLength { .. } => ErrorKind::Invalid,
            Self::NoSuchSlot { .. } => ErrorKind::Range,
            Self::BadBlock { .. }
            | Self::Ragged { .. }
            | Self::Taken { .. }
            | Self::NoDevice { .. }
            | Self::Clear { .. }
            | Self::OnDevice { .. }
            | Self::Unwritten { .. } => ErrorKind::Internal,
        }
    }
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        self.kind()
    }
}
