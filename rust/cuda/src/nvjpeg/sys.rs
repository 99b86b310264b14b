//! nvJPEG's functions, as nvjpeg.h of CUDA 12 and 13 declares them.

use crate::library::function_table;
use nvjpeg_sys::{
    cudaStream_t, libraryPropertyType, nvjpegBackend_t, nvjpegBufferDevice_t, nvjpegBufferPinned_t,
    nvjpegChromaSubsampling_t, nvjpegDecodeParams_t, nvjpegDevAllocator_t, nvjpegHandle_t,
    nvjpegImage_t, nvjpegJpegDecoder_t, nvjpegJpegState_t, nvjpegJpegStream_t,
    nvjpegOutputFormat_t, nvjpegPinnedAllocator_t, nvjpegStatus_t,
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
        fn nvjpegGetImageInfo(
            handle: nvjpegHandle_t,
            data: *const c_uchar,
            len: usize,
            components: *mut c_int,
            subsampling: *mut nvjpegChromaSubsampling_t,
            widths: *mut c_int,
            heights: *mut c_int,
        ) -> nvjpegStatus_t;

        fn nvjpegJpegStreamCreate(handle: nvjpegHandle_t, stream: *mut nvjpegJpegStream_t) -> nvjpegStatus_t;
        fn nvjpegJpegStreamDestroy(stream: nvjpegJpegStream_t) -> nvjpegStatus_t;
        fn nvjpegJpegStreamParse(
            handle: nvjpegHandle_t,
            data: *const c_uchar,
            len: usize,
            save_metadata: c_int,
            save_stream: c_int,
            stream: nvjpegJpegStream_t,
        ) -> nvjpegStatus_t;
        fn nvjpegJpegStreamParseHeader(
            handle: nvjpegHandle_t,
            data: *const c_uchar,
            len: usize,
            stream: nvjpegJpegStream_t,
        ) -> nvjpegStatus_t;

        fn nvjpegDecodeBatchedSupported(
            handle: nvjpegHandle_t,
            stream: nvjpegJpegStream_t,
            unsupported: *mut c_int,
        ) -> nvjpegStatus_t;
        fn nvjpegDecodeBatchedSupportedEx(
            handle: nvjpegHandle_t,
            stream: nvjpegJpegStream_t,
            parameters: nvjpegDecodeParams_t,
            unsupported: *mut c_int,
        ) -> nvjpegStatus_t;
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

        fn nvjpegDecodeParamsCreate(handle: nvjpegHandle_t, parameters: *mut nvjpegDecodeParams_t) -> nvjpegStatus_t;
        fn nvjpegDecodeParamsDestroy(parameters: nvjpegDecodeParams_t) -> nvjpegStatus_t;
        fn nvjpegDecodeParamsSetOutputFormat(
            parameters: nvjpegDecodeParams_t,
            format: nvjpegOutputFormat_t,
        ) -> nvjpegStatus_t;
        fn nvjpegDecoderCreate(
            handle: nvjpegHandle_t,
            backend: nvjpegBackend_t,
            decoder: *mut nvjpegJpegDecoder_t,
        ) -> nvjpegStatus_t;
        fn nvjpegDecoderDestroy(decoder: nvjpegJpegDecoder_t) -> nvjpegStatus_t;
        fn nvjpegDecoderJpegSupported(
            decoder: nvjpegJpegDecoder_t,
            stream: nvjpegJpegStream_t,
            parameters: nvjpegDecodeParams_t,
            unsupported: *mut c_int,
        ) -> nvjpegStatus_t;
        fn nvjpegDecoderStateCreate(
            handle: nvjpegHandle_t,
            decoder: nvjpegJpegDecoder_t,
            state: *mut nvjpegJpegState_t,
        ) -> nvjpegStatus_t;
        fn nvjpegBufferPinnedCreate(
            handle: nvjpegHandle_t,
            allocator: *mut nvjpegPinnedAllocator_t,
            buffer: *mut nvjpegBufferPinned_t,
        ) -> nvjpegStatus_t;
        fn nvjpegBufferPinnedDestroy(buffer: nvjpegBufferPinned_t) -> nvjpegStatus_t;
        fn nvjpegBufferDeviceCreate(
            handle: nvjpegHandle_t,
            allocator: *mut nvjpegDevAllocator_t,
            buffer: *mut nvjpegBufferDevice_t,
        ) -> nvjpegStatus_t;
        fn nvjpegBufferDeviceDestroy(buffer: nvjpegBufferDevice_t) -> nvjpegStatus_t;
        fn nvjpegStateAttachPinnedBuffer(state: nvjpegJpegState_t, buffer: nvjpegBufferPinned_t) -> nvjpegStatus_t;
        fn nvjpegStateAttachDeviceBuffer(state: nvjpegJpegState_t, buffer: nvjpegBufferDevice_t) -> nvjpegStatus_t;
        fn nvjpegDecodeJpegHost(
            handle: nvjpegHandle_t,
            decoder: nvjpegJpegDecoder_t,
            state: nvjpegJpegState_t,
            parameters: nvjpegDecodeParams_t,
            stream: nvjpegJpegStream_t,
        ) -> nvjpegStatus_t;
        fn nvjpegDecodeJpegTransferToDevice(
            handle: nvjpegHandle_t,
            decoder: nvjpegJpegDecoder_t,
            state: nvjpegJpegState_t,
            stream: nvjpegJpegStream_t,
            cuda_stream: cudaStream_t,
        ) -> nvjpegStatus_t;
        fn nvjpegDecodeJpegDevice(
            handle: nvjpegHandle_t,
            decoder: nvjpegJpegDecoder_t,
            state: nvjpegJpegState_t,
            destination: *mut nvjpegImage_t,
            cuda_stream: cudaStream_t,
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
