//! nvJPEG's functions, as nvjpeg.h of CUDA 12 and 13 declares them.

use crate::library::function_table;
use nvjpeg_sys::{
    cudaStream_t, libraryPropertyType, nvjpegBackend_t, nvjpegDevAllocator_t, nvjpegHandle_t,
    nvjpegImage_t, nvjpegJpegState_t, nvjpegOutputFormat_t, nvjpegPinnedAllocator_t,
    nvjpegStatus_t,
};
use std::ffi::{c_int, c_uchar, c_uint};

function_table! {
    /// What this crate calls.
    struct Functions {
        fn nvjpegGetProperty(property: libraryPropertyType, value: *mut c_int) -> nvjpegStatus_t;
        fn nvjpegCreateEx(
            backend: nvjpegBackend_t,
            device_allocator: *mut nvjpegDevAllocator_t,
            pinned_allocator: *mut nvjpegPinnedAllocator_t,
            flags: c_uint,
            handle: *mut nvjpegHandle_t,
        ) -> nvjpegStatus_t;
        fn nvjpegDestroy(handle: nvjpegHandle_t) -> nvjpegStatus_t;
        fn nvjpegJpegStateCreate(handle: nvjpegHandle_t, state: *mut nvjpegJpegState_t) -> nvjpegStatus_t;
        fn nvjpegJpegStateDestroy(state: nvjpegJpegState_t) -> nvjpegStatus_t;
        fn nvjpegDecodeBatchedInitialize(
            handle: nvjpegHandle_t,
            state: nvjpegJpegState_t,
            batch_size: c_int,
            max_cpu_threads: c_int,
            format: nvjpegOutputFormat_t,
        ) -> nvjpegStatus_t;
        fn nvjpegDecodeBatched(
            handle: nvjpegHandle_t,
            state: nvjpegJpegState_t,
            data: *const *const c_uchar,
            lens: *const usize,
            destinations: *mut nvjpegImage_t,
            stream: cudaStream_t,
        ) -> nvjpegStatus_t;
    }
    optional {
        // The first libraries of CUDA 12 may lack it.
        fn nvjpegGetHardwareDecoderInfo(
            handle: nvjpegHandle_t,
            engines: *mut c_uint,
            cores_per_engine: *mut c_uint,
        ) -> nvjpegStatus_t;
    }
}

/// Calls a function of nvJPEG; its status becomes a `Result` that says what was being done.
macro_rules! call {
    ($nvjpeg:expr, $name:ident($($argument:expr),* $(,)?), $($doing:tt)+) => {{
        let nvjpeg: &$crate::nvjpeg::NvJpeg = $nvjpeg;
        let status = (nvjpeg.functions.$name)($($argument),*);
        $crate::nvjpeg::NvJpeg::check(stringify!($name), status, format_args!($($doing)+))
    }};
}
pub(super) use call;
