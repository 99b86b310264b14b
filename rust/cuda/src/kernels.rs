//! The kernels on a device, and packed batches as launches of them.

use crate::Error;
use crate::driver::{Argument, DeviceBuffer, Function, Launch, Module, Stream};
use crate::pack::{BLOCK_THREADS, Kernel, Packed, PackedMix};
use std::ffi::CString;
use std::sync::Arc;

/// All kernels, loaded.
#[derive(Debug)]
pub(crate) struct Kernels {
    batch: Vec<(Kernel, Function)>,
    mix: Function,
}

impl Kernels {
    /// # Errors
    /// What the driver says.
    pub(crate) fn new(module: &Arc<Module>) -> Result<Self, Error> {
        let function = |kernel: Kernel| {
            let name = CString::new(kernel.name()).expect("names of ours have no zero byte");
            Ok((kernel, module.function(&name)?))
        };
        let batch = Kernel::ALL.into_iter().map(function).collect::<Result<_, Error>>()?;
        Ok(Self { batch, mix: module.function(c"fb_mix")? })
    }

    /// Puts a mix into the stream.
    ///
    /// # Errors
    /// What the driver says.
    ///
    /// # Safety
    /// - The slots that the mix was packed for are nobody else's until the stream has come this far.
    pub(crate) unsafe fn mix(&self, packed: &PackedMix, stream: &Stream) -> Result<(), Error> {
        let grid =
            Launch { grid: [packed.tiles, 1, 1], block: [BLOCK_THREADS, 1, 1], shared_bytes: 0 };
        // SAFETY: the kernel's parameter is this struct; `pack_mix` checked that it stays inside
        // the slots, which the caller vouches for.
        unsafe { self.mix.launch(stream, grid, &[Argument::new(&packed.parameter)]) }
    }

    /// Puts the launches into the stream.
    ///
    /// # Errors
    /// What the driver says; some may be in the stream then.
    ///
    /// # Safety
    /// - `blob` holds the packed blob and `scratch` is as large as the batch asks for, and cleared
    ///   as far, as the stream sees them; both, and all that the packed items named, are kept until
    ///   the stream has come this far.
    pub(crate) unsafe fn launch(
        &self,
        packed: &Packed,
        blob: &DeviceBuffer,
        scratch: &DeviceBuffer,
        stream: &Stream,
    ) -> Result<(), Error> {
        let (blob, scratch) = (blob.pointer(), scratch.pointer());
        for launch in &packed.launches {
            let grid = Launch {
                grid: [launch.tiles, launch.jobs, 1],
                block: [BLOCK_THREADS, 1, 1],
                shared_bytes: 0,
            };
            let arguments =
                [Argument::new(&blob), Argument::new(&scratch), Argument::new(&launch.jobs_offset)];
            // SAFETY: the kernels' parameters are three 64-bit numbers; `pack` checked that they
            // stay inside what the caller vouches for.
            unsafe { self.function(launch.kernel).launch(stream, grid, &arguments) }?;
        }
        Ok(())
    }

    fn function(&self, kernel: Kernel) -> &Function {
        let found = self.batch.iter().find(|(known, _)| *known == kernel);
        &found.expect("all kernels are loaded").1
    }
}
