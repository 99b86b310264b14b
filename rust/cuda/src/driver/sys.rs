//! The driver's functions, as cuda.h of CUDA 12.0 declares them.

use crate::library::function_table;
use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent, CUfunction, CUmodule, CUstream,
    CUstreamCaptureMode, CUstreamCaptureStatus,
};
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

/// A `CUresult` as a plain number, because drivers may return codes that its enum lacks.
pub(super) type Code = c_uint;

function_table! {
    /// What this crate calls. Every driver since CUDA 12.0 has them.
    struct Functions {
        fn cuInit(flags: c_uint) -> Code;
        fn cuDriverGetVersion(version: *mut c_int) -> Code;
        fn cuGetErrorName(code: Code, text: *mut *const c_char) -> Code;
        fn cuGetErrorString(code: Code, text: *mut *const c_char) -> Code;

        fn cuDeviceGetCount(count: *mut c_int) -> Code;
        fn cuDeviceGet(device: *mut CUdevice, ordinal: c_int) -> Code;
        fn cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice) -> Code;
        fn cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice) -> Code;
        fn cuDeviceTotalMem_v2(bytes: *mut usize, device: CUdevice) -> Code;
        fn cuDeviceGetPCIBusId(text: *mut c_char, len: c_int, device: CUdevice) -> Code;
        fn cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice) -> Code;
        fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) -> Code;
        fn cuCtxPushCurrent_v2(context: CUcontext) -> Code;
        fn cuCtxPopCurrent_v2(context: *mut CUcontext) -> Code;
        fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) -> Code;

        fn cuStreamCreate(stream: *mut CUstream, flags: c_uint) -> Code;
        fn cuStreamDestroy_v2(stream: CUstream) -> Code;
        fn cuStreamSynchronize(stream: CUstream) -> Code;
        fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: c_uint) -> Code;
        fn cuStreamIsCapturing(stream: CUstream, status: *mut CUstreamCaptureStatus) -> Code;

        fn cuEventCreate(event: *mut CUevent, flags: c_uint) -> Code;
        fn cuEventDestroy_v2(event: CUevent) -> Code;
        fn cuEventRecord(event: CUevent, stream: CUstream) -> Code;
        fn cuEventQuery(event: CUevent) -> Code;
        fn cuEventSynchronize(event: CUevent) -> Code;

        fn cuMemAlloc_v2(pointer: *mut CUdeviceptr, bytes: usize) -> Code;
        fn cuMemFree_v2(pointer: CUdeviceptr) -> Code;
        fn cuMemHostAlloc(pointer: *mut *mut c_void, bytes: usize, flags: c_uint) -> Code;
        fn cuMemFreeHost(pointer: *mut c_void) -> Code;
        fn cuMemcpyHtoDAsync_v2(to: CUdeviceptr, from: *const c_void, bytes: usize, stream: CUstream) -> Code;
        fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: CUdeviceptr, bytes: usize, stream: CUstream) -> Code;
        fn cuMemsetD8Async(to: CUdeviceptr, value: c_uchar, bytes: usize, stream: CUstream) -> Code;

        fn cuModuleLoadData(module: *mut CUmodule, image: *const c_void) -> Code;
        fn cuModuleUnload(module: CUmodule) -> Code;
        fn cuModuleGetFunction(function: *mut CUfunction, module: CUmodule, name: *const c_char) -> Code;
        fn cuLaunchKernel(
            function: CUfunction,
            grid_x: c_uint,
            grid_y: c_uint,
            grid_z: c_uint,
            block_x: c_uint,
            block_y: c_uint,
            block_z: c_uint,
            shared_bytes: c_uint,
            stream: CUstream,
            arguments: *mut *mut c_void,
            extra: *mut *mut c_void,
        ) -> Code;
    }
}

/// Calls a function of the driver; its code becomes a `Result` that says what was being done.
macro_rules! call {
    ($driver:expr, $name:ident($($argument:expr),* $(,)?), $($doing:tt)+) => {{
        let driver: &$crate::driver::Driver = $driver;
        let code = (driver.functions.$name)($($argument),*);
        driver.check(stringify!($name), code, format_args!($($doing)+))
    }};
}
pub(super) use call;
