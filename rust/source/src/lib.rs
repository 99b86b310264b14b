//! Where records come from: lists of files, folders of classes, samples pushed from Python.
//!
//! **Invariants**
//! - Bytes are read whole with positioned reads, never through a map: a file that shrinks while
//!   it is read is a sample error, not a signal.
//! - No pixels are decoded here, no threads start here.
#![forbid(unsafe_code)]

mod error;
mod folder;
mod list;
mod names;
mod pushed;
mod read;

pub use error::Error;
pub use folder::{FolderScan, scan_folder};
pub use list::{FileList, Labels};
pub use names::Names;
pub use pushed::{Forgotten, Pushed, PushedLen};
pub use read::read_file;
