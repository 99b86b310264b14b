//! The only cxx bridge and the only static library: Forebay's core as C++ sees it.
//!
//! **Invariants**
//! - Every function of the bridge that can fail is one `guard(|| ...)`: no panic crosses. The
//!   others only read a field.
//! - Two forms of memory cross: slices borrowed for the length of a call, and boxed [`Memory`] that
//!   a tensor's deleter gives back.
//! - No logic: options are parsed, the rooms put together, results turned into tensors.

mod batch;
mod device;
mod devices;
mod examine;
mod fork;
mod guard;
mod handles;
mod ops;
mod options;
mod pipeline;
mod scan;
mod stateless;
mod tensors;

use cxx::UniquePtr;
use guard::{Error, guard};
use pipeline::{PIPELINES, Pipeline, dataset_fault};
use scan::SCANS;
use std::sync::Arc;
use std::time::Duration;
use tensors::{Memory, Poll};

#[cxx::bridge(namespace = "forebay::ffi")]
#[allow(unreachable_pub, missing_docs, reason = "cxx makes every item public; C++ reads it")]
mod ffi {
    /// Element types, numbered for both sides.
    #[derive(Debug)]
    enum DType {
        Bool,
        UInt8,
        UInt16,
        Int64,
        Float16,
        BFloat16,
        Float32,
        Float64,
    }

    /// A tensor's memory and form; whoever takes it drops `memory` when the tensor dies.
    #[derive(Debug)]
    struct TensorOut {
        dtype: DType,
        sizes: Vec<i64>,
        strides: Vec<i64>,
        memory: Box<Memory>,
    }

    /// Labels as they lie in a contiguous tensor.
    struct Labels<'a> {
        dtype: DType,
        sizes: &'a [i64],
        elements: &'a [u8],
    }

    /// One encoded image, borrowed.
    struct Encoded<'a> {
        bytes: &'a [u8],
    }

    /// How crops are resized, and by how many threads (0: the usable cores).
    struct CropOptions<'a> {
        height: i64,
        width: i64,
        /// JSON text of the name.
        interpolation: &'a str,
        antialias: bool,
        threads: u64,
    }

    /// How a batch of decoded images, `(N, C, H, W)`, lies in memory.
    #[derive(Debug, Clone, Copy)]
    struct ImageForm {
        shape: [i64; 4],
        /// Rows of whole pixels; else a plane a channel.
        interleaved: bool,
    }

    /// How pixels become floats.
    struct NormalizeOptions<'a> {
        mean: &'a [f64],
        std: &'a [f64],
        dtype: DType,
    }

    #[namespace = "forebay"]
    unsafe extern "C++" {
        include!("forebay/device.h");

        /// A tensor of torch's on a device.
        type DeviceTensor;
        fn address(self: &DeviceTensor) -> u64;

        /// torch's allocator on one device.
        type DeviceAllocator;
        /// The device's number.
        fn index(self: &DeviceAllocator) -> u32;
        /// Null when there is no memory left.
        fn allocate(
            self: &DeviceAllocator,
            dtype: DType,
            sizes: &[i64],
            strides: &[i64],
        ) -> UniquePtr<DeviceTensor>;
        /// The calling thread's current stream.
        fn current_stream(self: &DeviceAllocator) -> Result<u64>;
    }

    extern "Rust" {
        type Memory;
        fn data(self: &Memory) -> *mut u8;
        /// torch's own tensor, taken out; null if the memory is the core's.
        fn take_device_tensor(self: &mut Memory) -> Result<UniquePtr<DeviceTensor>>;

        /// What a poll brought: nothing yet if `info` is empty, else JSON and its tensors.
        type Poll;
        fn info(self: &Poll) -> &str;
        fn tensors(self: &Poll) -> usize;
        /// Takes the next tensor; there are as many as `tensors` says.
        fn take(self: &mut Poll) -> Result<TensorOut>;

        fn decode_image(encoded: &[u8], mode: &str, orientation: &str) -> Result<TensorOut>;
        fn decode_images(
            encoded: &[Encoded],
            mode: &str,
            orientation: &str,
            strict: bool,
            threads: u64,
            device: UniquePtr<DeviceAllocator>,
        ) -> Result<Box<Poll>>;
        fn decode_resized_crop(
            encoded: &[Encoded],
            boxes: &[i64],
            orientation: &str,
            strict: bool,
            options: &CropOptions,
            device: UniquePtr<DeviceAllocator>,
        ) -> Result<Box<Poll>>;
        fn resized_crop_normalize(
            images: &[u8],
            form: ImageForm,
            boxes: &[i64],
            flip: &[bool],
            options: &CropOptions,
            normalize: &NormalizeOptions,
        ) -> Result<TensorOut>;
        /// The same of images on a device, which are read when its current stream comes to them.
        fn resized_crop_normalize_on_device(
            images: &DeviceTensor,
            form: ImageForm,
            boxes: &[i64],
            flip: &[bool],
            options: &CropOptions,
            normalize: &NormalizeOptions,
            device: UniquePtr<DeviceAllocator>,
        ) -> Result<TensorOut>;
        /// Where the stateless ops find CUDA; said once.
        fn cuda_places(folders: Vec<String>, cuda_major: i64, kernels: &str) -> Result<()>;
        fn check_recipe(recipe: &str) -> Result<()>;
        fn examine_file(path: &[u8], max_pixels: i64) -> Result<String>;
        fn system_info() -> Result<String>;
        /// Opens every device; a `cuda_major` of 0 stands for none.
        fn cuda_report(folders: Vec<String>, cuda_major: i64, kernels: &str) -> Result<String>;
        fn raise(kind: i64) -> Result<()>;
        fn panic() -> Result<()>;

        fn scan_folder(root: &str, extensions: Vec<String>) -> Result<[i64; 3]>;
        fn scan_poll(handle: &[i64], timeout_ms: u64) -> Result<Box<Poll>>;
        fn scan_close(handle: &[i64]) -> Result<()>;

        fn pipeline_open(
            options: &str,
            names: &[u8],
            offsets: &[i64],
            labels: &Labels,
            device: UniquePtr<DeviceAllocator>,
        ) -> Result<[i64; 3]>;
        fn pipeline_start(handle: &[i64], epoch: u64, position: u64) -> Result<()>;
        fn pipeline_next(handle: &[i64], timeout_ms: u64) -> Result<Box<Poll>>;
        fn pipeline_state(handle: &[i64]) -> Result<String>;
        fn pipeline_check_state(handle: &[i64], state: &str) -> Result<[u64; 2]>;
        fn pipeline_feed_wanted(handle: &[i64]) -> Result<u64>;
        fn pipeline_feed(handle: &[i64], indices: &[i64]) -> Result<()>;
        fn pipeline_feed_end(handle: &[i64]) -> Result<()>;
        fn pipeline_wanted(handle: &[i64], max: u64, timeout_ms: u64) -> Result<TensorOut>;
        fn pipeline_supply(handle: &[i64], token: i64, bytes: &[u8]) -> Result<()>;
        fn pipeline_supply_path(handle: &[i64], token: i64, path: &[u8]) -> Result<()>;
        fn pipeline_supply_fault(handle: &[i64], token: i64, reason: &str) -> Result<()>;
        fn pipeline_stats(handle: &[i64]) -> Result<String>;
        fn pipeline_describe(handle: &[i64]) -> Result<String>;
        fn pipeline_close(handle: &[i64]) -> Result<()>;
        fn pipelines_left_behind(timeout_ms: u64) -> Result<u64>;
    }
}

fn decode_image(encoded: &[u8], mode: &str, orientation: &str) -> Result<ffi::TensorOut, Error> {
    guard(|| stateless::decode_image(encoded, mode, orientation))
}

fn decode_images(
    encoded: &[ffi::Encoded],
    mode: &str,
    orientation: &str,
    strict: bool,
    threads: u64,
    device: UniquePtr<ffi::DeviceAllocator>,
) -> Result<Box<Poll>, Error> {
    guard(|| {
        let poll = ops::decode_images(encoded, mode, orientation, strict, threads, device)?;
        Ok(Box::new(poll))
    })
}

fn decode_resized_crop(
    encoded: &[ffi::Encoded],
    boxes: &[i64],
    orientation: &str,
    strict: bool,
    options: &ffi::CropOptions,
    device: UniquePtr<ffi::DeviceAllocator>,
) -> Result<Box<Poll>, Error> {
    guard(|| {
        let poll = ops::decode_resized_crop(encoded, boxes, orientation, strict, options, device)?;
        Ok(Box::new(poll))
    })
}

fn resized_crop_normalize(
    images: &[u8],
    form: ffi::ImageForm,
    boxes: &[i64],
    flip: &[bool],
    options: &ffi::CropOptions,
    normalize: &ffi::NormalizeOptions,
) -> Result<ffi::TensorOut, Error> {
    guard(|| ops::resized_crop_normalize(images, form, boxes, flip, options, normalize))
}

fn resized_crop_normalize_on_device(
    images: &ffi::DeviceTensor,
    form: ffi::ImageForm,
    boxes: &[i64],
    flip: &[bool],
    options: &ffi::CropOptions,
    normalize: &ffi::NormalizeOptions,
    device: UniquePtr<ffi::DeviceAllocator>,
) -> Result<ffi::TensorOut, Error> {
    guard(|| {
        let target = ops::device::Target::open(device, "resized_crop_normalize")?;
        target.resized_crop_normalize(images, form, boxes, flip, options, normalize)
    })
}

fn cuda_places(folders: Vec<String>, cuda_major: i64, kernels: &str) -> Result<(), Error> {
    guard(|| {
        devices::set_places(stateless::places(folders, cuda_major), kernels.into());
        Ok(())
    })
}

fn check_recipe(recipe: &str) -> Result<(), Error> {
    guard(|| stateless::check_recipe(recipe))
}

fn examine_file(path: &[u8], max_pixels: i64) -> Result<String, Error> {
    guard(|| examine::examine_file(path, examine::max_pixels(max_pixels)?))
}

fn system_info() -> Result<String, Error> {
    guard(stateless::system_info)
}

fn cuda_report(folders: Vec<String>, cuda_major: i64, kernels: &str) -> Result<String, Error> {
    guard(|| stateless::cuda_report(folders, cuda_major, kernels))
}

fn raise(kind: i64) -> Result<(), Error> {
    guard(|| stateless::raise(kind))
}

fn panic() -> Result<(), Error> {
    guard(|| panic!("a panic on request"))
}

fn scan_folder(root: &str, extensions: Vec<String>) -> Result<[i64; 3], Error> {
    guard(|| Ok(SCANS.insert(scan::start(root, extensions)?)))
}

fn scan_poll(handle: &[i64], timeout_ms: u64) -> Result<Box<Poll>, Error> {
    guard(|| Ok(Box::new(scan::poll(&*SCANS.get(handle)?, timeout_ms)?)))
}

fn scan_close(handle: &[i64]) -> Result<(), Error> {
    guard(|| SCANS.remove(handle).map(drop))
}

fn pipeline_open(
    options: &str,
    names: &[u8],
    offsets: &[i64],
    labels: &ffi::Labels,
    device: UniquePtr<ffi::DeviceAllocator>,
) -> Result<[i64; 3], Error> {
    guard(|| Ok(PIPELINES.insert(Pipeline::open(options, names, offsets, labels, device)?)))
}

fn with<T>(handle: &[i64], f: impl FnOnce(&Arc<Pipeline>) -> Result<T, Error>) -> Result<T, Error> {
    f(&PIPELINES.get(handle)?)
}

fn pipeline_start(handle: &[i64], epoch: u64, position: u64) -> Result<(), Error> {
    guard(|| with(handle, |pipeline| pipeline.start(epoch, position)))
}

fn pipeline_next(handle: &[i64], timeout_ms: u64) -> Result<Box<Poll>, Error> {
    guard(|| with(handle, |pipeline| Ok(Box::new(pipeline.next(timeout_ms)?))))
}

fn pipeline_state(handle: &[i64]) -> Result<String, Error> {
    guard(|| with(handle, |pipeline| pipeline::to_json(&pipeline.state())))
}

fn pipeline_check_state(handle: &[i64], state: &str) -> Result<[u64; 2], Error> {
    guard(|| with(handle, |pipeline| pipeline.check_state(state)))
}

fn pipeline_feed_wanted(handle: &[i64]) -> Result<u64, Error> {
    guard(|| with(handle, |pipeline| Ok(pipeline.feed_wanted() as u64)))
}

fn pipeline_feed(handle: &[i64], indices: &[i64]) -> Result<(), Error> {
    guard(|| with(handle, |pipeline| pipeline.push_batch(indices)))
}

fn pipeline_feed_end(handle: &[i64]) -> Result<(), Error> {
    guard(|| with(handle, |pipeline| pipeline.push_end()))
}

fn pipeline_wanted(handle: &[i64], max: u64, timeout_ms: u64) -> Result<ffi::TensorOut, Error> {
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    guard(|| with(handle, |pipeline| pipeline.wanted(max, timeout_ms)))
}

fn pipeline_supply(handle: &[i64], token: i64, bytes: &[u8]) -> Result<(), Error> {
    guard(|| with(handle, |pipeline| pipeline.supply(token, Ok(bytes.to_vec()))))
}

fn pipeline_supply_path(handle: &[i64], token: i64, path: &[u8]) -> Result<(), Error> {
    guard(|| with(handle, |pipeline| pipeline.supply(token, stateless::read_path(path))))
}

fn pipeline_supply_fault(handle: &[i64], token: i64, reason: &str) -> Result<(), Error> {
    guard(|| with(handle, |pipeline| pipeline.supply(token, Err(dataset_fault(reason)))))
}

fn pipeline_stats(handle: &[i64]) -> Result<String, Error> {
    guard(|| with(handle, |pipeline| pipeline.stats()))
}

fn pipeline_describe(handle: &[i64]) -> Result<String, Error> {
    guard(|| with(handle, |pipeline| pipeline.describe()))
}

fn pipeline_close(handle: &[i64]) -> Result<(), Error> {
    guard(|| {
        if let Some(pipeline) = PIPELINES.remove(handle)? {
            pipeline.close();
        }
        Ok(())
    })
}

fn pipelines_left_behind(timeout_ms: u64) -> Result<u64, Error> {
    guard(|| Ok(forebay_engine::left_behind(Duration::from_millis(timeout_ms)) as u64))
}
