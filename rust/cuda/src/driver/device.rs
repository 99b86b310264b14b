//! A device, with its primary context retained.

use super::sys::call;
use super::{Current, Driver};
use crate::Error;
use cudarc::driver::sys::{CUcontext, CUdevice, CUdevice_attribute};
use std::ffi::{CStr, c_char};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// A device in use. Keeps the primary context, which torch shares, until it is dropped.
#[derive(Debug)]
pub struct Device {
    driver: &'static Driver,
    ordinal: u32,
    handle: CUdevice,
    context: CUcontext,
}

// SAFETY: a context may be made current on any thread, on several at once; nothing else of the
// device changes after `open`.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// What the driver tells of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// The product's name.
    pub name: String,
    /// What its code must be compiled for.
    pub compute_capability: ComputeCapability,
    /// All of its memory.
    pub total_memory: usize,
    /// Domain, bus, device and function: `0000:1b:00.0`.
    pub pci_bus_id: String,
    /// The node of the host's memory that it is near to; None where the machine has but one, or
    /// does not tell.
    pub numa_node: Option<u32>,
}

/// Generation of a device's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComputeCapability {
    /// 9 for Hopper.
    pub major: u32,
    /// 0 for the H100.
    pub minor: u32,
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cuda:{}", self.ordinal)
    }
}

impl Device {
    /// Retains the primary context of a device, creating it if torch has not yet.
    ///
    /// # Errors
    /// [`Error::NoDevice`], or what the driver says.
    pub fn open(driver: &'static Driver, ordinal: u32) -> Result<Arc<Self>, Error> {
        let count = driver.device_count()?;
        let number = i32::try_from(ordinal).ok().filter(|_| ordinal < count);
        let number = number.ok_or(Error::NoDevice { ordinal, count })?;
        let mut handle = 0;
        // SAFETY: the handle lives for the call, and the number is below the count.
        unsafe { call!(driver, cuDeviceGet(&raw mut handle, number), "opening cuda:{ordinal}") }?;
        let mut context = std::ptr::null_mut();
        // SAFETY: the context lives for the call, and the driver gave the handle.
        unsafe {
            call!(
                driver,
                cuDevicePrimaryCtxRetain(&raw mut context, handle),
                "retaining the context of cuda:{ordinal}"
            )
        }?;
        Ok(Arc::new(Self { driver, ordinal, handle, context }))
    }

    /// Its number, as torch counts.
    pub fn ordinal(&self) -> u32 {
        self.ordinal
    }

    /// The driver that it belongs to.
    pub fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub(super) fn context(&self) -> CUcontext {
        self.context
    }

    /// Makes its context current on this thread, as calls of nvJPEG want it. The methods of this
    /// crate do so by themselves.
    ///
    /// # Errors
    /// The driver refuses, as in a forked child.
    pub fn enter(&self) -> Result<Current<'_>, Error> {
        Current::push(self)
    }

    /// Name, compute capability, memory and place.
    ///
    /// # Errors
    /// The driver does not tell.
    pub fn info(&self) -> Result<Info, Error> {
        let mut total_memory = 0;
        // SAFETY: the number lives for the call.
        unsafe {
            call!(
                self.driver,
                cuDeviceTotalMem_v2(&raw mut total_memory, self.handle),
                "asking {self} for its memory"
            )
        }?;
        let mut name = [0; 256];
        // SAFETY: the buffer has the length that is given, 256, and lives for the call.
        unsafe {
            call!(
                self.driver,
                cuDeviceGetName(name.as_mut_ptr(), 256, self.handle),
                "asking {self} for its name"
            )
        }?;
        let mut pci = [0; 32];
        // SAFETY: the buffer has the length that is given, 32, and lives for the call.
        unsafe {
            call!(
                self.driver,
                cuDeviceGetPCIBusId(pci.as_mut_ptr(), 32, self.handle),
                "asking {self} for its PCI bus"
            )
        }?;
        let pci_bus_id = text(&pci).to_lowercase();
        Ok(Info {
            name: text(&name),
            compute_capability: self.compute_capability()?,
            total_memory,
            numa_node: numa_node(Path::new("/sys/bus/pci/devices"), &pci_bus_id),
            pci_bus_id,
        })
    }

    /// What its code must be compiled for.
    ///
    /// # Errors
    /// The driver does not tell.
    pub fn compute_capability(&self) -> Result<ComputeCapability, Error> {
        use CUdevice_attribute::{
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR as MAJOR,
            CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR as MINOR,
        };
        let major = self.attribute(MAJOR)?;
        Ok(ComputeCapability { major, minor: self.attribute(MINOR)? })
    }

    fn attribute(&self, attribute: CUdevice_attribute) -> Result<u32, Error> {
        let mut value = 0;
        // SAFETY: the value lives for the call.
        unsafe {
            call!(
                self.driver,
                cuDeviceGetAttribute(&raw mut value, attribute, self.handle),
                "asking {self} for {attribute:?}"
            )
        }?;
        Ok(u32::try_from(value).unwrap_or(0))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: `open` retained it once, and whatever needs the context holds this device.
        let _ = unsafe {
            call!(self.driver, cuDevicePrimaryCtxRelease_v2(self.handle), "releasing a context")
        };
    }
}

/// The text up to its zero; the driver ends every text with one, within the buffer.
fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer.iter().map(|&byte| byte.cast_unsigned()).collect();
    let text = CStr::from_bytes_until_nul(&bytes).unwrap_or_default();
    text.to_string_lossy().into_owned()
}

/// Linux's own answer; -1 stands for a machine with one node.
fn numa_node(devices: &Path, pci_bus_id: &str) -> Option<u32> {
    let file = devices.join(pci_bus_id).join("numa_node");
    std::fs::read_to_string(file).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_end_at_their_zero() {
        let buffer: Vec<c_char> = b"NVIDIA H200\0junk".iter().map(|b| b.cast_signed()).collect();
        assert_eq!(text(&buffer), "NVIDIA H200");
        assert_eq!(text(&[]), "");
    }

    #[test]
    fn the_numa_node_is_linuxs() {
        let devices = tempfile::tempdir().unwrap();
        for (id, content) in [("0000:1b:00.0", "1\n"), ("0000:1c:00.0", "-1\n")] {
            std::fs::create_dir(devices.path().join(id)).unwrap();
            std::fs::write(devices.path().join(id).join("numa_node"), content).unwrap();
        }
        assert_eq!(numa_node(devices.path(), "0000:1b:00.0"), Some(1));
        assert_eq!(numa_node(devices.path(), "0000:1c:00.0"), None);
        assert_eq!(numa_node(devices.path(), "0000:1d:00.0"), None);
    }
}
