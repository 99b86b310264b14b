//! What can go wrong between encoded bytes and pixels.

use forebay_core::ports::{Fault, Stage};
use forebay_core::{ErrorKind, Format, HasKind, Size};

/// Why an image cannot be decoded.
///
/// ```
/// use forebay_codec::{Error, probe};
/// use forebay_core::{ErrorKind, HasKind, Limits};
/// let error = probe(b"", &Limits::default()).unwrap_err();
/// assert!(matches!(error, Error::Empty));
/// assert_eq!(error.kind(), ErrorKind::Data);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There are no bytes.
    #[error("empty file")]
    Empty,
    /// The first bytes belong to no image format that we know.
    #[error("not an image: starts with {start}")]
    NotAnImage {
        /// The first bytes, readable.
        start: String,
    },
    /// An image format or a variant of one that is not decoded.
    #[error("{what} is not decoded")]
    Unsupported {
        /// The format or variant, by name.
        what: String,
    },
    /// The file ends before the image does.
    #[error("truncated: {what}")]
    Truncated {
        /// What is missing.
        what: String,
    },
    /// The header declares more pixels than the limit allows.
    #[error("{size} pixels exceed the limit of {limit}; raise max_pixels")]
    TooLarge {
        /// As declared.
        size: Size,
        /// `Limits::max_pixels`.
        limit: u64,
    },
    /// The file has more scans than an image of its size is given time for.
    #[error("more than {allowed} scans of {size} pixels; raise max_pixels")]
    TooManyScans {
        /// As declared.
        size: Size,
        /// By `Limits::max_pixels`.
        allowed: u64,
    },
    /// The file breaks its format's rules.
    #[error("damaged {format}: {what}")]
    Damaged {
        /// By name.
        format: &'static str,
        /// Which rule.
        what: String,
    },
    /// The stop flag was raised.
    #[error("stopped")]
    Stopped,
    /// The fast Huffman reader met data that is not clean; libjpeg's own decides.
    #[error("irregular Huffman data")]
    Irregular {
        /// It is damage, even if libjpeg decodes it without a warning.
        damaged: bool,
    },
    /// Memory could not be had.
    #[error("out of memory: {what}")]
    Memory {
        /// For what.
        what: String,
    },
    /// The request does not fit the image or the buffer.
    #[error("{what}")]
    Invalid {
        /// Expected and got.
        what: String,
    },
    /// A bug of ours.
    #[error("internal error: {what}")]
    Internal {
        /// Which invariant was broken.
        what: String,
    },
}

impl Error {
    pub(crate) fn damaged(format: Format, what: impl Into<String>) -> Self {
        Self::Damaged { format: format.name(), what: what.into() }
    }

    pub(crate) fn jpeg(what: impl Into<String>) -> Self {
        Self::damaged(Format::Jpeg, what)
    }

    pub(crate) fn png(what: impl Into<String>) -> Self {
        Self::damaged(Format::Png, what)
    }

    pub(crate) fn unsupported(what: impl Into<String>) -> Self {
        Self::Unsupported { what: what.into() }
    }

    pub(crate) fn truncated(what: impl Into<String>) -> Self {
        Self::Truncated { what: what.into() }
    }

    /// `count` bytes of `value`, or an error instead of the abort that `vec!` would be.
    pub(crate) fn filled(value: u8, count: usize, what: &str) -> Result<Vec<u8>, Self> {
        let mut bytes = Vec::new();
        let what = || format!("{count} bytes for {what}");
        bytes.try_reserve_exact(count).map_err(|_| Self::Memory { what: what() })?;
        bytes.resize(count, value);
        Ok(bytes)
    }

    pub(crate) fn internal(what: impl Into<String>) -> Self {
        Self::Internal { what: what.into() }
    }
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Empty
            | Self::NotAnImage { .. }
            | Self::Truncated { .. }
            | Self::Damaged { .. } => ErrorKind::Data,
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            Self::TooLarge { .. } | Self::TooManyScans { .. } | Self::Invalid { .. } => {
                ErrorKind::Invalid
            }
            Self::Stopped => ErrorKind::Closed,
            Self::Memory { .. } => ErrorKind::Memory,
            Self::Irregular { .. } | Self::Internal { .. } => ErrorKind::Internal,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::new(Stage::Decode, error)
    }
}
