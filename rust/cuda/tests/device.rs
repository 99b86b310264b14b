//! The driver's wrappers on a real device: memory, streams, events, kernels, nvJPEG's handles.

mod common;

use common::{or_skip, places};
use forebay_core::{ErrorKind, HasKind};
use forebay_cuda::Error;
use forebay_cuda::driver::{
    Argument, Device, DeviceBuffer, Driver, Event, Launch, Module, PinnedBuffer, Stream, Wait, fill,
};
use forebay_cuda::nvjpeg::{Backend, BatchState, Handle, NvJpeg};
use forebay_cuda::nvrtc::{Nvrtc, Program, Source};
use std::sync::Arc;

/// The first device, with its driver.
fn device() -> Option<Arc<Device>> {
    or_skip(Driver::load(&places()).and_then(|driver| Device::open(driver, 0)))
}

#[test]
fn a_device_tells_what_it_is_and_others_do_not_exist() {
    let Some(device) = device() else { return };
    let info = device.info().unwrap();
    assert!(!info.name.is_empty() && info.total_memory > 1 << 30, "{info:?}");
    assert!(info.compute_capability.major >= 5, "{info:?}");
    assert_eq!(info.pci_bus_id.len(), "0000:1b:00.0".len(), "{info:?}");
    let error = Device::open(device.driver(), 1000).unwrap_err();
    assert!(matches!(error, Error::NoDevice { ordinal: 1000, .. }), "{error}");
}

#[test]
fn bytes_go_to_the_device_and_back_in_the_streams_order() {
    let Some(device) = device() else { return };
    let (stream, other) = (Stream::new(&device).unwrap(), Stream::new(&device).unwrap());
    let event = Event::new(&device, Wait::Block).unwrap();
    assert!(event.query().unwrap(), "not recorded is done");
    let buffer = DeviceBuffer::new(&device, 1 << 20).unwrap();
    let mut pinned = PinnedBuffer::new(&device, 1 << 20).unwrap();
    assert!(pinned.bytes().iter().all(|&byte| byte == 0));
    let some: Vec<u8> = (0..=255).collect();
    // SAFETY: all buffers live, and nobody touches them, until `other` has been waited for.
    unsafe {
        fill(buffer.pointer(), buffer.len(), 7, &stream).unwrap();
        buffer.upload(1000, &some, &stream).unwrap();
        event.record(&stream).unwrap();
        other.wait(&event).unwrap();
        buffer.download(0, 1 << 20, &mut pinned, &other).unwrap();
    }
    other.synchronize().unwrap();
    event.synchronize().unwrap();
    assert!(event.query().unwrap());
    assert_eq!(&pinned.bytes()[1000..1256], &some);
    assert!(pinned.bytes()[..1000].iter().all(|&byte| byte == 7));
    // SAFETY: refused before anything is submitted.
    let error = unsafe { buffer.upload((1 << 20) - 10, &some, &stream) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(!stream.is_capturing().unwrap());
}

#[test]
fn too_much_memory_is_an_error_of_its_own_kind() {
    let Some(device) = device() else { return };
    let error = DeviceBuffer::new(&device, 1 << 50).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DeviceMemory, "{error}");
    assert!(error.to_string().contains("on cuda:0"), "{error}");
    // The device goes on.
    DeviceBuffer::new(&device, 1).unwrap();
}

#[test]
fn a_kernel_compiles_loads_and_runs() {
    let Some(device) = device() else { return };
    let Some(nvrtc) = or_skip(Nvrtc::load(&places())) else { return };
    let text = "extern \"C\" __global__ void add(unsigned char* data, int count, unsigned char x) {
                  const int i = blockIdx.x * blockDim.x + threadIdx.x;
                  if (i < count) data[i] += x;
                }";
    let program = Program { source: Source { name: "add.cu", text }, headers: &[], options: &[] };
    let architecture = nvrtc.architecture(device.compute_capability().unwrap()).unwrap();
    let module = Module::load(&device, &nvrtc.compile(&program, &architecture).unwrap()).unwrap();
    let error = module.function(c"subtract").unwrap_err();
    assert!(error.to_string().contains("CUDA_ERROR_NOT_FOUND"), "{error}");
    let add = module.function(c"add").unwrap();
    drop(module);

    let stream = Stream::new(&device).unwrap();
    let buffer = DeviceBuffer::new(&device, 1000).unwrap();
    let mut pinned = PinnedBuffer::new(&device, 1000).unwrap();
    let (pointer, count, x) = (buffer.pointer(), 1000i32, 5u8);
    let arguments = [Argument::new(&pointer), Argument::new(&count), Argument::new(&x)];
    let launch = Launch { grid: [4, 1, 1], block: [256, 1, 1], shared_bytes: 0 };
    // SAFETY: the arguments are the kernel's, it stays below `count`, and the buffers live until
    // the stream has been waited for.
    unsafe {
        fill(buffer.pointer(), buffer.len(), 1, &stream).unwrap();
        add.launch(&stream, launch, &arguments).unwrap();
        buffer.download(0, 1000, &mut pinned, &stream).unwrap();
    }
    stream.synchronize().unwrap();
    assert!(pinned.bytes().iter().all(|&byte| byte == 6));
}

#[test]
fn engines_are_counted_and_opened() {
    let Some(device) = device() else { return };
    let Some(nvjpeg) = or_skip(NvJpeg::load(&places())) else { return };
    let handle = Handle::new(nvjpeg, &device, Backend::Default).unwrap();
    handle.engines().unwrap();
    let mut state = BatchState::new(&handle).unwrap();
    drop(handle);
    state.initialize(4).unwrap();
    let stream = Stream::new(&device).unwrap();
    // SAFETY: refused before anything is submitted.
    let error = unsafe { state.decode(&[], &[], &stream) }.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}
