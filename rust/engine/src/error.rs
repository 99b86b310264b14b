//! What can go wrong with a pipeline, as opposed to a sample.

use forebay_core::{ErrorKind, HasKind};
use std::sync::Arc;

/// An error of this crate. A pipeline that failed keeps giving the same error.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An option has a value that makes no sense.
    #[error("{option}: {reason}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// What was expected, and what came.
        reason: String,
    },
    /// The parts of a pipeline do not fit each other.
    #[error("the parts do not fit: {reason}")]
    Parts {
        /// What was expected, and what came.
        reason: String,
    },
    /// No epoch was started.
    #[error("no epoch was started")]
    NotStarted,
    /// An epoch cannot start there.
    #[error("position {position} lies behind the epoch's {len} samples")]
    Position {
        /// Where it should start.
        position: u64,
        /// Samples in the epoch.
        len: u64,
    },
    /// A call that suits another kind of feed.
    #[error("{call}: {reason}")]
    Feed {
        /// What was called.
        call: &'static str,
        /// Why it cannot be.
        reason: &'static str,
    },
    /// A pushed index is past the end.
    #[error("index {index} is out of range for {len} samples")]
    Index {
        /// What was pushed.
        index: u64,
        /// Samples in the source.
        len: u64,
    },
    /// The batch's memory.
    #[error(transparent)]
    Slab(#[from] forebay_slab::Error),
    /// The operating system gave no thread.
    #[error("cannot start thread {name}")]
    Thread {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        source: Arc<std::io::Error>,
    },
    /// More bad samples than the user tolerates.
    #[error("{bad} bad samples, more than max_errors={max}; the last one: {last}")]
    TooManyBadSamples {
        /// Bad samples since the pipeline was opened.
        bad: u64,
        /// How many are tolerated.
        max: u64,
        /// Key and reason of the last one.
        last: String,
    },
    /// A backend failed, through no fault of a sample.
    #[error("{reason}")]
    Backend {
        /// What kind of failure.
        kind: ErrorKind,
        /// What it said.
        reason: String,
    },
    /// The pipeline was closed.
    #[error("the pipeline is closed")]
    Closed,
    /// A panic in a backend, or a broken invariant.
    #[error("internal error: {during}: {reason}; please report")]
    Internal {
        /// What was going on.
        during: &'static str,
        /// The panic's text.
        reason: String,
    },
}

impl Error {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Option { .. }
            | Self::NotStarted
            | Self::Position { .. }
            | Self::Feed { .. }
            | Self::Parts { .. } => ErrorKind::Invalid,
            Self::Index { .. } => ErrorKind::Range,
            Self::Slab(error) => error.kind(),
            Self::Thread { .. } => ErrorKind::Io,
            Self::TooManyBadSamples { .. } => ErrorKind::Data,
            Self::Backend { kind, .. } => *kind,
            Self::Closed => ErrorKind::Closed,
            Self::Internal { .. } => ErrorKind::Internal,
        }
    }
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        self.kind()
    }
}
