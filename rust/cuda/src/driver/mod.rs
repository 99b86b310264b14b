//! The CUDA driver: devices, streams, events, memory and kernels as values with owners.
//!
//! Types are cudarc's, the table of functions is ours: cudarc's own loading panics where a symbol
//! is missing, and its functions return an enum of the codes of CUDA 12.0, while a newer driver may
//! return others (226, `CUDA_ERROR_CONTAINED`), which no value of that enum may be.
//!
//! **Invariants**
//! - Every safe method makes its device's context current for the length of the call and leaves
//!   the thread as it was: the consumer's thread has torch's device current.
//! - Errors of destructors are dropped: what a device cannot recover from, every later call says
//!   again, and after the driver's shutdown there is nothing to free.

mod context;
mod device;
mod event;
mod memory;
mod module;
mod stream;
mod sys;

pub use context::Current;
pub use device::{ComputeCapability, Device, Info};
pub use event::{Event, Wait};
pub use memory::{DeviceBuffer, PinnedBuffer, fill};
pub use module::{Argument, Cubin, Function, Launch, Module};
pub use stream::Stream;

use crate::Error;
use crate::find::{self, Found, Part, Places, Version};
use cudarc::driver::sys::CUresult;
use std::ffi::{CStr, c_char};
use std::fmt;
use std::sync::OnceLock;
use sys::{Code, Functions, call};

/// The driver, once it is loaded.
#[derive(Debug)]
pub struct Driver {
    functions: Functions,
    found: Found,
}

static DRIVER: OnceLock<Driver> = OnceLock::new();

impl Driver {
    /// Loads the driver, once in a process; it stays loaded. Touches no device.
    ///
    /// # Errors
    /// [`Error::Missing`] when there is none, or one older than CUDA 12.
    pub fn load(places: &Places) -> Result<&'static Self, Error> {
        if let Some(driver) = DRIVER.get() {
            return Ok(driver);
        }
        let (library, path, functions) = find::search(Part::Driver, places, |library| {
            // SAFETY: `sys.rs` declares them as cuda.h does, and `find` opens nothing but libcuda.
            unsafe { Functions::resolve(library) }
        })?;
        let path = library.file_of("cuInit").unwrap_or(path);
        let mut driver = Self { functions, found: Found { path, version: Version::default() } };
        driver.found.version = driver.version()?;
        Ok(DRIVER.get_or_init(|| driver))
    }

    /// Where it lies, and the newest CUDA that it runs.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// How many devices the process sees. Creates no context.
    ///
    /// # Errors
    /// The driver does not run here, which may mean that no device is there.
    pub fn device_count(&self) -> Result<u32, Error> {
        // SAFETY: no preconditions; may be called any number of times.
        unsafe { call!(self, cuInit(0), "starting the driver") }?;
        let mut count = 0;
        // SAFETY: the count lives for the call.
        unsafe { call!(self, cuDeviceGetCount(&raw mut count), "counting devices") }?;
        Ok(u32::try_from(count).unwrap_or(0))
    }

    fn version(&self) -> Result<Version, Error> {
        let mut version = 0;
        // SAFETY: the version lives for the call; needs no cuInit.
        unsafe { call!(self, cuDriverGetVersion(&raw mut version), "asking for its version") }?;
        let version = u32::try_from(version).unwrap_or(0);
        Ok(Version { major: version / 1000, minor: version % 1000 / 10 })
    }

    /// Turns a code into an error that says what was being done.
    fn check(
        &self,
        call: &'static str,
        code: Code,
        doing: fmt::Arguments<'_>,
    ) -> Result<(), Error> {
        if code == CUresult::CUDA_SUCCESS as Code {
            return Ok(());
        }
        if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY as Code {
            return Err(Error::DeviceMemory { doing: doing.to_string() });
        }
        let name = error_text(self.functions.cuGetErrorName, code);
        let text = error_text(self.functions.cuGetErrorString, code);
        Err(Error::Driver {
            call,
            name: name.unwrap_or_else(|| format!("error {code}")),
            text: text.unwrap_or_else(|| "unknown to this driver".to_owned()),
            doing: doing.to_string(),
        })
    }
}

/// What `cuGetErrorName` or `cuGetErrorString` says; None for a code that it does not know.
fn error_text(
    function: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
    code: Code,
) -> Option<String> {
    let mut text = std::ptr::null();
    // SAFETY: both take any code, and write null for those that they do not know.
    unsafe { function(code, &raw mut text) };
    if text.is_null() {
        return None;
    }
    // SAFETY: the driver's own constant text.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
