//! What nvJPEG's functions return.

use forebay_core::ErrorKind;
use std::fmt;

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Status {
    /// A handle was not made.
    NotInitialized,
    /// An argument makes no sense to it.
    InvalidParameter,
    /// The data break the format's rules.
    BadJpeg,
    /// A kind of JPEG that this backend does not decode.
    JpegNotSupported,
    /// Memory could not be had.
    AllocatorFailure,
    /// A kernel or a copy failed.
    ExecutionFailed,
    /// The library has no code for this device.
    ArchMismatch,
    /// A bug of nvJPEG.
    InternalError,
    /// The device has no such backend.
    ImplementationNotSupported,
    /// The data end before the image does.
    IncompleteBitstream,
    /// A code that the header did not have.
    Unknown(u32),
}

impl Status {
    /// None for success.
    pub(super) fn from_raw(status: u32) -> Option<Self> {
        Some(match status {
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_SUCCESS => return None,
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_NOT_INITIALIZED => Self::NotInitialized,
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_INVALID_PARAMETER => Self::InvalidParameter,
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_BAD_JPEG => Self::BadJpeg,
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_JPEG_NOT_SUPPORTED => Self::JpegNotSupported,
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_ALLOCATOR_FAILURE => Self::AllocatorFailure,
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_EXECUTION_FAILED => Self::ExecutionFailed,
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_ARCH_MISMATCH => Self::ArchMismatch,
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_INTERNAL_ERROR => Self::InternalError,
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED => {
                Self::ImplementationNotSupported
            }
            nvjpeg_sys::nvjpegStatus_t_NVJPEG_STATUS_INCOMPLETE_BITSTREAM => {
                Self::IncompleteBitstream
            }
            other => Self::Unknown(other),
        })
    }

    pub(crate) fn kind(self) -> ErrorKind {
        match self {
            Self::BadJpeg | Self::IncompleteBitstream => ErrorKind::Data,
            Self::JpegNotSupported | Self::ArchMismatch | Self::ImplementationNotSupported => {
                ErrorKind::Unsupported
            }
            Self::AllocatorFailure => ErrorKind::DeviceMemory,
            Self::NotInitialized | Self::InvalidParameter => ErrorKind::Internal,
            Self::ExecutionFailed | Self::InternalError | Self::Unknown(_) => ErrorKind::Device,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotInitialized => "NVJPEG_STATUS_NOT_INITIALIZED",
            Self::InvalidParameter => "NVJPEG_STATUS_INVALID_PARAMETER",
            Self::BadJpeg => "NVJPEG_STATUS_BAD_JPEG",
            Self::JpegNotSupported => "NVJPEG_STATUS_JPEG_NOT_SUPPORTED",
            Self::AllocatorFailure => "NVJPEG_STATUS_ALLOCATOR_FAILURE",
            Self::ExecutionFailed => "NVJPEG_STATUS_EXECUTION_FAILED",
            Self::ArchMismatch => "NVJPEG_STATUS_ARCH_MISMATCH",
            Self::InternalError => "NVJPEG_STATUS_INTERNAL_ERROR",
            Self::ImplementationNotSupported => "NVJPEG_STATUS_IMPLEMENTATION_NOT_SUPPORTED",
            Self::IncompleteBitstream => "NVJPEG_STATUS_INCOMPLETE_BITSTREAM",
            Self::Unknown(code) => return write!(f, "status {code}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_header_has_its_name_and_only_zero_is_success() {
        assert_eq!(Status::from_raw(0), None);
        for code in 1..=10 {
            let name = Status::from_raw(code).unwrap().to_string();
            assert!(name.starts_with("NVJPEG_STATUS_"), "{code} is {name}");
        }
        assert_eq!(Status::from_raw(11), Some(Status::Unknown(11)));
        assert_eq!(Status::AllocatorFailure.kind(), ErrorKind::DeviceMemory);
    }
}
