//! Coefficients of a region of a baseline JPEG: Huffman codes are read, and nothing more is done.

use super::{Decompressor, ffi};
use crate::Error;
use forebay_core::ports::{Blocks, Stop};
use forebay_core::{Region, Sampling, Size};

/// Coefficients of a block.
const BLOCK: usize = 64;

/// An open image, about to be read.
#[derive(Debug)]
pub(crate) struct Window<'a> {
    owner: &'a mut Decompressor,
    raw: Box<ffi::Window>,
}

impl std::fmt::Debug for ffi::Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { mcu_x, mcu_y, mcus_across, mcus_down, .. } = self;
        write!(f, "Window({mcus_across}x{mcus_down} MCUs at {mcu_x}, {mcu_y})")
    }
}

impl Decompressor {
    /// Finds the blocks that hold the samples of `region` and a neighbour of each.
    ///
    /// # Errors
    /// [`Error::Irregular`] for files that only libjpeg reads, and as for rows.
    pub(crate) fn window<'a>(
        &'a mut self,
        bytes: &'a [u8],
        size: Size,
        region: Region,
        stop: &'a Stop,
    ) -> Result<Window<'a>, Error> {
        let header = self.open(bytes, stop)?;
        let mut window = Window { owner: self, raw: Box::default() };
        let found = Size { width: header.width, height: header.height };
        if found != size || region.width == 0 || region.height == 0 || !region.fits(size) {
            return Err(Error::internal(format!("probed {size}, found {found}, asked {region:?}")));
        }
        let Region { x, y, width, height } = region;
        let raw = window.owner.raw.as_ptr();
        // SAFETY: `raw` is live and open; the window is written before the call returns.
        let status =
            unsafe { ffi::fb_jpeg_start_window(raw, x, y, width, height, &raw mut *window.raw) };
        window.owner.check(status)?;
        Ok(window)
    }
}

impl Window<'_> {
    /// Bytes of all coefficients.
    pub(crate) fn bytes(&self) -> usize {
        let blocks = |of: &ffi::Component| of.across as usize * of.down as usize;
        self.raw.components.iter().map(blocks).sum::<usize>() * BLOCK * size_of::<i16>()
    }

    /// Reads into `memory`, of [`Window::bytes`] bytes, and says where each component's blocks lie.
    ///
    /// # Errors
    /// [`Error::Irregular`] for data that is not clean.
    pub(crate) fn read(self, memory: &mut [u8], kind: [Sampling; 3]) -> Result<[Blocks; 3], Error> {
        let need = self.bytes();
        // SAFETY: any bytes are numbers.
        let (before, numbers, _) = unsafe { memory.align_to_mut::<i16>() };
        if !before.is_empty() || size_of_val(numbers) < need {
            return Err(Error::internal(format!("{need} bytes of coefficients do not fit")));
        }
        let raw = self.owner.raw.as_ptr();
        // SAFETY: `raw` is live and open, `bytes` of the image outlive this by `window`'s contract,
        // and there is room for all blocks of the window.
        let status =
            unsafe { ffi::fb_jpeg_read_window(raw, &raw const *self.raw, numbers.as_mut_ptr()) };
        self.owner.check(status)?;
        let mut offset = 0;
        let components = self.raw.components;
        Ok([0, 1, 2].map(|place| {
            let ffi::Component { x, y, across, down, quantisation } = components[place];
            let blocks = Blocks { sampling: kind[place], offset, x, y, across, down, quantisation };
            offset += across as usize * down as usize * BLOCK * size_of::<i16>();
            blocks
        }))
    }
}

impl Drop for Window<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` is live; closing frees what the image took and forgets `bytes` and `stop`.
        unsafe { ffi::fb_jpeg_close(self.owner.raw.as_ptr()) }
    }
}
