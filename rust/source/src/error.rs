//! Errors of opening a source; a sample that cannot be read is a fault, not an error.

use forebay_core::{ErrorKind, HasKind};
use std::path::PathBuf;

/// Why a source cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A folder cannot be listed.
    #[error("{}: cannot list the folder: {source}", path.display())]
    List {
        /// The folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: std::io::Error,
    },
    /// A folder of class folders has none.
    #[error(
        "{}: couldn't find any class folder; expected one sub-folder per class with images in it",
        path.display()
    )]
    NoClasses {
        /// The folder.
        path: PathBuf,
    },
    /// Offsets of a list of names do not describe its bytes.
    #[error("names: {problem}")]
    Names {
        /// What is wrong.
        problem: String,
    },
    /// Labels do not match the names.
    #[error("labels: got {got} for {want} paths; pass one label per path")]
    Labels {
        /// Labels given.
        got: usize,
        /// Paths given.
        want: usize,
    },
    /// The scan was told to stop.
    #[error("the scan was stopped")]
    Stopped,
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::List { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                ErrorKind::NotFound
            }
            Self::List { .. } => ErrorKind::Io,
            Self::NoClasses { .. } => ErrorKind::NotFound,
            Self::Names { .. } | Self::Labels { .. } => ErrorKind::Invalid,
            Self::Stopped => ErrorKind::Closed,
        }
    }
}
