//! Why an item is not rendered.

use forebay_core::{DType, ErrorKind, HasKind, Region};

/// Why an item was left out of a packed batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The plan has no pass.
    #[error("a plan without a pass")]
    NoPass,
    /// A gather takes any pixels of its input, which only a pass before can have made.
    #[error("a first pass that needs a whole image")]
    FirstGather,
    /// Layers of a mixture make images of its size, by passes of their own.
    #[error("a layer of another size, without a pass, or with layers of its own")]
    Layer,
    /// Images of one channel have no colours to mix.
    #[error("a change of colour of grey")]
    Gray,
    /// The slot's elements are of a type that no image has.
    #[error("{dtype:?} is no element type of an image")]
    Elements {
        /// `Write::dtype`.
        dtype: DType,
    },
    /// The slot does not hold exactly what the plan writes, at an address that elements can have.
    #[error("a slot of {bytes} bytes at {address:#x}, need {need}")]
    Slot {
        /// Its address.
        address: u64,
        /// Its length.
        bytes: u64,
        /// What the plan writes.
        need: u64,
    },
    /// The plan reads pixels that the source does not hold.
    #[error("{needed:?} of an image of which {held:?} is there")]
    Region {
        /// Samples of the plane that the plan reads.
        needed: Region,
        /// Samples of the plane that are there.
        held: Region,
    },
    /// The source contradicts itself.
    #[error("a source with {what}")]
    Source {
        /// In which way.
        what: &'static str,
    },
    /// An axis reads beyond its input, its outputs go back and forth, or its tables have wrong
    /// lengths.
    #[error("an axis that leaves 0..{input}, or does not go one way")]
    Axis {
        /// Positions of the input.
        input: u32,
    },
    /// A part of the result is to be overwritten that it does not have.
    #[error("{region:?}, which the result does not have, is erased")]
    Erase {
        /// That part.
        region: Region,
    },
    /// A batch has more images than a launch of the mixing kernel can name.
    #[error("images of a batch of {slots} are mixed, the renderer takes {limit}")]
    MixedSlots {
        /// Of the batch, as far as known.
        slots: u64,
        /// The most.
        limit: u64,
    },
    /// A pass has more pixels than threads can be numbered.
    #[error("{pixels} pixels in one pass, the renderer takes {limit}")]
    TooLarge {
        /// Of the pass's output, or of its intermediate.
        pixels: u64,
        /// The most.
        limit: u64,
    },
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::TooLarge { .. } | Self::MixedSlots { .. } => ErrorKind::Unsupported,
            Self::NoPass
            | Self::FirstGather
            | Self::Layer
            | Self::Gray
            | Self::Elements { .. }
            | Self::Slot { .. }
            | Self::Region { .. }
            | Self::Source { .. }
            | Self::Axis { .. }
            | Self::Erase { .. } => ErrorKind::Internal,
        }
    }
}
