//! nvJPEG: a GPU's JPEG engines.
//!
//! Types are nvjpeg-sys's (bindings of nvJPEG 11.9; no layout that this module uses has changed up
//! to 13.3), the table of functions is ours, loaded by path.
//!
//! **Invariants**
//! - Every call has the device's primary context current: nvJPEG's runtime uses what it finds.
//! - What nvJPEG made inside a handle holds that handle.

mod batch;
mod handle;
mod status;
mod sys;

pub use batch::{BatchState, Image};
pub use handle::{Backend, Engines, Handle};
pub use status::Status;

use crate::Error;
use crate::find::{self, Found, Part, Places, Version};
use nvjpeg_sys::{
    libraryPropertyType, libraryPropertyType_t_MAJOR_VERSION, libraryPropertyType_t_MINOR_VERSION,
};
use std::fmt;
use std::sync::OnceLock;
use sys::{Functions, call};

/// The library, once it is loaded.
#[derive(Debug)]
pub struct NvJpeg {
    functions: Functions,
    found: Found,
}

static NVJPEG: OnceLock<NvJpeg> = OnceLock::new();

impl NvJpeg {
    /// Loads the library, once in a process; it stays loaded. Touches no device.
    ///
    /// # Errors
    /// [`Error::Missing`].
    pub fn load(places: &Places) -> Result<&'static Self, Error> {
        if let Some(nvjpeg) = NVJPEG.get() {
            return Ok(nvjpeg);
        }
        let (library, path, functions) = find::search(Part::NvJpeg, places, |library| {
            // SAFETY: `sys.rs` declares them as nvjpeg.h does, and `find` opens nothing but libnvjpeg.
            unsafe { Functions::resolve(library) }
        })?;
        let path = library.file_of("nvjpegGetProperty").unwrap_or(path);
        let mut nvjpeg = Self { functions, found: Found { path, version: Version::default() } };
        nvjpeg.found.version = Version {
            major: nvjpeg.property(libraryPropertyType_t_MAJOR_VERSION)?,
            minor: nvjpeg.property(libraryPropertyType_t_MINOR_VERSION)?,
        };
        Ok(NVJPEG.get_or_init(|| nvjpeg))
    }

    /// Where it lies, and its version.
    pub fn found(&self) -> &Found {
        &self.found
    }

    fn property(&self, property: libraryPropertyType) -> Result<u32, Error> {
        let mut value = 0;
        // SAFETY: the value lives for the call.
        unsafe {
            call!(self, nvjpegGetProperty(property, &raw mut value), "asking for its version")
        }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    /// Turns a status into an error that says what was being done.
    fn check(
        call: &'static str,
        status: nvjpeg_sys::nvjpegStatus_t,
        doing: fmt::Arguments<'_>,
    ) -> Result<(), Error> {
        match Status::from_raw(status) {
            None => Ok(()),
            Some(status) => Err(Error::NvJpeg { call, status, doing: doing.to_string() }),
        }
    }
}
