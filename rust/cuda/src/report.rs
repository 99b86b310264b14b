//! What of CUDA is on this machine, for `forebay doctor`.
//!
//! It opens every device, which creates contexts: nothing else may call it (LIF-2).

use crate::Error;
use crate::cache::Cache;
use crate::driver::{Device, Driver};
use crate::find::{Found, Part, Places};
use crate::nvjpeg::{Backend, Handle, NvJpeg};
use crate::nvrtc::Nvrtc;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Everything that was found and everything that is missing.
#[derive(Debug, Serialize)]
pub struct Report {
    /// libcuda.
    pub driver: Library,
    /// libnvrtc.
    pub nvrtc: Library,
    /// libnvjpeg.
    pub nvjpeg: Library,
    /// By number; empty without a driver.
    pub devices: Vec<DeviceReport>,
    /// Why there are no devices, where the driver says.
    pub devices_error: Option<String>,
    /// Compiled kernels.
    pub kernels: Kernels,
}

/// One library.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Library {
    /// It is there.
    Found {
        /// The file.
        found: PathBuf,
        /// As it says itself.
        version: String,
    },
    /// It is not.
    Missing {
        /// Always null, beside `found` of the other case.
        found: Option<PathBuf>,
        /// Which part, where it was looked for, and what to install.
        problem: String,
        /// The folders.
        looked_in: Vec<PathBuf>,
    },
}

/// One device.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum DeviceReport {
    /// It can be used.
    Usable(UsableDevice),
    /// It cannot.
    Broken {
        /// Its number.
        ordinal: u32,
        /// Why.
        problem: String,
    },
}

/// A device that can be used.
#[derive(Debug, Serialize)]
pub struct UsableDevice {
    /// Its number.
    pub ordinal: u32,
    /// The product's name.
    pub name: String,
    /// `9.0`.
    pub compute_capability: String,
    /// All of its memory.
    pub memory_bytes: usize,
    /// `0000:1b:00.0`.
    pub pci_bus_id: String,
    /// Of the host's memory.
    pub numa_node: Option<u32>,
    /// None without nvJPEG, and where it cannot tell.
    pub jpeg_engines: Option<u32>,
    /// Why nvJPEG does not work on it, where it should.
    pub jpeg_problem: Option<String>,
}

/// The cache of compiled kernels.
#[derive(Debug, Serialize)]
pub struct Kernels {
    /// Where they are kept.
    pub folder: PathBuf,
    /// How many.
    pub entries: usize,
    /// Their size.
    pub bytes: u64,
}

impl Library {
    fn new(part: Part, found: Result<&Found, &Error>, places: &Places) -> Self {
        match found {
            Ok(found) => {
                Self::Found { found: found.path.clone(), version: found.version.to_string() }
            }
            Err(Error::Missing(missing)) => Self::Missing {
                found: None,
                problem: missing.to_string(),
                looked_in: missing.searched.clone(),
            },
            Err(error) => Self::Missing {
                found: None,
                problem: format!("{}: {error}", part.name()),
                looked_in: places.folders.clone(),
            },
        }
    }
}

/// Looks for everything, and opens every device.
pub fn report(places: &Places, kernels: &Path) -> Report {
    let driver = Driver::load(places);
    let nvrtc = Nvrtc::load(places);
    let nvjpeg = NvJpeg::load(places);
    let (devices, devices_error) =
        match driver.as_ref().map(|driver| (driver, driver.device_count())) {
            Err(_) => (Vec::new(), None),
            Ok((_, Err(error))) => (Vec::new(), Some(error.to_string())),
            Ok((driver, Ok(count))) => {
                let nvjpeg = nvjpeg.as_ref().ok().copied();
                ((0..count).map(|ordinal| device(driver, ordinal, nvjpeg)).collect(), None)
            }
        };
    let cache = Cache::new(kernels);
    let usage = cache.usage();
    let library = |part, found| Library::new(part, found, places);
    Report {
        driver: library(Part::Driver, driver.as_ref().map(|driver| driver.found())),
        nvrtc: library(Part::Nvrtc, nvrtc.as_ref().map(|nvrtc| nvrtc.found())),
        nvjpeg: library(Part::NvJpeg, nvjpeg.as_ref().map(|nvjpeg| nvjpeg.found())),
        devices,
        devices_error,
        kernels: Kernels {
            folder: cache.folder().to_owned(),
            entries: usage.entries,
            bytes: usage.bytes,
        },
    }
}

fn device(driver: &'static Driver, ordinal: u32, nvjpeg: Option<&'static NvJpeg>) -> DeviceReport {
    match usable_device(driver, ordinal, nvjpeg) {
        Ok(device) => DeviceReport::Usable(device),
        Err(error) => DeviceReport::Broken { ordinal, problem: error.to_string() },
    }
}

fn usable_device(
    driver: &'static Driver,
    ordinal: u32,
    nvjpeg: Option<&'static NvJpeg>,
) -> Result<UsableDevice, Error> {
    let device = Device::open(driver, ordinal)?;
    let info = device.info()?;
    let engines = nvjpeg.map(|nvjpeg| Handle::new(nvjpeg, &device, Backend::Default)?.engines());
    let (engines, problem) = match engines {
        None => (None, None),
        Some(Ok(engines)) => (engines, None),
        Some(Err(error)) => (None, Some(error.to_string())),
    };
    Ok(UsableDevice {
        ordinal,
        name: info.name,
        compute_capability: info.compute_capability.to_string(),
        memory_bytes: info.total_memory,
        pci_bus_id: info.pci_bus_id,
        numa_node: info.numa_node,
        jpeg_engines: engines.map(|engines| engines.count),
        jpeg_problem: problem,
    })
}
