//! Compiled kernels on a device.

use super::sys::call;
use super::{Device, Stream};
use crate::Error;
use cudarc::driver::sys::{CUfunction, CUmodule};
use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::sync::Arc;

/// Machine code of one architecture, whole: NVRTC made it, or the cache checked its sum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cubin(Vec<u8>);

impl Cubin {
    /// Code that is known to be whole.
    pub(crate) fn new(code: Vec<u8>) -> Self {
        Self(code)
    }

    /// The code.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Code that is loaded on a device.
#[derive(Debug)]
pub struct Module {
    device: Arc<Device>,
    handle: CUmodule,
}

// SAFETY: the driver takes calls on a module from any thread; a module does not change.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads code.
    ///
    /// # Errors
    /// What the driver says, as for code of another architecture.
    pub fn load(device: &Arc<Device>, code: &Cubin) -> Result<Arc<Self>, Error> {
        let _current = device.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle lives for the call, and a `Cubin` is a whole image, whose end the
        // driver reads from its own header.
        unsafe {
            call!(
                device.driver(),
                cuModuleLoadData(&raw mut handle, code.0.as_ptr().cast()),
                "loading {} bytes of code on {device}",
                code.0.len()
            )
        }?;
        Ok(Arc::new(Self { device: Arc::clone(device), handle }))
    }

    /// A kernel by its `extern "C"` name.
    ///
    /// # Errors
    /// What the driver says, as for a name that is not there.
    pub fn function(self: &Arc<Self>, name: &CStr) -> Result<Function, Error> {
        let device = &self.device;
        let _current = device.enter()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the handle lives for the call, the module while `self` does.
        unsafe {
            call!(
                device.driver(),
                cuModuleGetFunction(&raw mut handle, self.handle, name.as_ptr()),
                "looking for the kernel {name:?}"
            )
        }?;
        Ok(Function { module: Arc::clone(self), name: name.into(), handle })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        if let Ok(_current) = self.device.enter() {
            // SAFETY: `load` loaded it, and every function of it held it.
            let _ = unsafe {
                call!(self.device.driver(), cuModuleUnload(self.handle), "unloading code")
            };
        }
    }
}

/// A kernel.
#[derive(Debug, Clone)]
pub struct Function {
    module: Arc<Module>,
    name: Box<CStr>,
    handle: CUfunction,
}

// SAFETY: the driver takes launches of a kernel from any thread, several at once.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

/// How many threads a launch has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Blocks along x, y and z.
    pub grid: [u32; 3],
    /// Threads of a block along x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory of a block.
    pub shared_bytes: u32,
}

/// A value for a parameter of a kernel, borrowed until the launch has copied it.
#[derive(Debug, Clone, Copy)]
pub struct Argument<'a> {
    pointer: *mut c_void,
    value: PhantomData<&'a ()>,
}

impl<'a> Argument<'a> {
    /// The parameter must have the size and layout of `T`.
    pub fn new<T: Copy>(value: &'a T) -> Self {
        Self { pointer: std::ptr::from_ref(value).cast_mut().cast(), value: PhantomData }
    }
}

impl Function {
    /// Submits the kernel.
    ///
    /// # Errors
    /// What the driver says: of the launch, or of a kernel submitted earlier.
    ///
    /// # Safety
    /// - `arguments` are the kernel's parameters, in number, order, size and layout.
    /// - Memory that they point to is valid, of that length, until the stream has come this far.
    /// - The kernel stays inside it at this number of threads.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        launch: Launch,
        arguments: &[Argument<'_>],
    ) -> Result<(), Error> {
        let device = &self.module.device;
        let _current = device.enter()?;
        let mut pointers: Vec<*mut c_void> = arguments.iter().map(|each| each.pointer).collect();
        let Launch { grid, block, shared_bytes } = launch;
        // SAFETY: the function lives, its module is held; the driver reads every argument before
        // it returns; the caller vouches for what they say.
        unsafe {
            call!(
                device.driver(),
                cuLaunchKernel(
                    self.handle,
                    grid[0],
                    grid[1],
                    grid[2],
                    block[0],
                    block[1],
                    block[2],
                    shared_bytes,
                    stream.handle(),
                    pointers.as_mut_ptr(),
                    std::ptr::null_mut(),
                ),
                "launching {:?} of {grid:?} blocks on {device}",
                self.name
            )
        }
    }
}
