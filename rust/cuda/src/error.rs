//! What can go wrong between this process and a GPU.

use crate::find::Missing;
use forebay_core::{ErrorKind, HasKind};

/// Why something could not be done on a device.
///
/// ```
/// use forebay_core::{ErrorKind, HasKind};
/// let error = forebay_cuda::Error::NoDevice { ordinal: 3, count: 1 };
/// assert_eq!(error.to_string(), "there is no device cuda:3, the driver shows 1");
/// assert_eq!(error.kind(), ErrorKind::Unsupported);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A library is not on this machine.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// The driver shows no device of that number.
    #[error("there is no device cuda:{ordinal}, the driver shows {count}")]
    NoDevice {
        /// As asked for.
        ordinal: u32,
        /// How many there are.
        count: u32,
    },
    /// A device's memory is exhausted.
    #[error("out of memory on the device while {doing}")]
    DeviceMemory {
        /// With the number of bytes and the device.
        doing: String,
    },
    /// The host gives no more page-locked memory.
    #[error("out of page-locked host memory while {doing}")]
    PinnedMemory {
        /// With the number of bytes.
        doing: String,
    },
    /// A call of the driver failed.
    #[error("{call} returned {name} ({text}) while {doing}")]
    Driver {
        /// The driver's function.
        call: &'static str,
        /// The driver's name for the error.
        name: String,
        /// The driver's sentence about it.
        text: String,
        /// What the call was for.
        doing: String,
    },
    /// A kernel does not compile.
    #[error("{name} does not compile for {architecture}: {log}")]
    Compile {
        /// Of the program.
        name: String,
        /// `sm_90` or the like.
        architecture: String,
        /// The compiler's own words.
        log: String,
    },
    /// The compiler does not know the device.
    #[error("NVRTC {version} compiles for {known}, not for {architecture}; {advice}")]
    Architecture {
        /// `sm_90` or the like.
        architecture: String,
        /// The compiler's.
        version: String,
        /// What it compiles for.
        known: String,
        /// What to install.
        advice: &'static str,
    },
    /// A call of NVRTC failed.
    #[error("{call} returned {name}")]
    Nvrtc {
        /// NVRTC's function.
        call: &'static str,
        /// NVRTC's name for the error.
        name: String,
    },
    /// A call of nvJPEG failed.
    #[error("{call} returned {status} while {doing}")]
    NvJpeg {
        /// nvJPEG's function.
        call: &'static str,
        /// What it returned.
        status: crate::nvjpeg::Status,
        /// What the call was for.
        doing: String,
    },
    /// An argument makes no sense.
    #[error("{what}")]
    Invalid {
        /// Expected and got.
        what: String,
    },
}

impl HasKind for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Missing(_) | Self::NoDevice { .. } | Self::Architecture { .. } => {
                ErrorKind::Unsupported
            }
            Self::DeviceMemory { .. } => ErrorKind::DeviceMemory,
            Self::PinnedMemory { .. } => ErrorKind::Memory,
            Self::Driver { .. } | Self::Nvrtc { .. } => ErrorKind::Device,
            // The sources are ours and compiled in.
            Self::Compile { .. } => ErrorKind::Internal,
            Self::NvJpeg { status, .. } => status.kind(),
            Self::Invalid { .. } => ErrorKind::Invalid,
        }
    }
}
