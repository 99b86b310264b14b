//! A JPEG inside another file, which says what its samples mean.

use super::{BAND_ROWS, Decompressor, ffi};
use crate::Error;
use forebay_core::Size;
use forebay_core::ports::Stop;
use std::ffi::c_int;

/// An open image, closed at the end.
struct Open<'a>(&'a mut Decompressor);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` is live; closing frees what the image took and forgets bytes and flag.
        unsafe { ffi::fb_jpeg_close(self.0.raw.as_ptr()) }
    }
}

impl Decompressor {
    /// All samples of a JPEG of `size`, interleaved: RGB of YCbCr if `ycbcr`, else as stored; and
    /// the number of warnings about damage that libjpeg worked around.
    pub(crate) fn samples(
        &mut self,
        bytes: &[u8],
        size: Size,
        components: u8,
        ycbcr: bool,
        stop: &Stop,
    ) -> Result<(Vec<u8>, u32), Error> {
        let header = self.open(bytes, stop)?;
        let open = Open(self);
        let raw = open.0.raw.as_ptr();
        let found = Size { width: header.width, height: header.height };
        if found != size {
            return Err(Error::internal(format!("probed {size}, found {found}")));
        }
        // SAFETY: `raw` is live and open.
        let status =
            unsafe { ffi::fb_jpeg_declare(raw, u32::from(components), c_int::from(ycbcr)) };
        open.0.check(status)?;
        let mut columns = ffi::Columns::default();
        // SAFETY: as before; `columns` is written before the call returns.
        let status = unsafe { ffi::fb_jpeg_start(raw, 1, 0, size.width, 1, &raw mut columns) };
        open.0.check(status)?;
        if columns.width != size.width {
            return Err(Error::internal(format!("{} columns of {size}", columns.width)));
        }
        let stride = usize::from(components) * size.width as usize;
        let mut samples = Error::filled(0, stride * size.height as usize, "a JPEG's samples")?;
        for band in samples.chunks_mut(BAND_ROWS as usize * stride) {
            if stop.raised() {
                return Err(Error::Stopped);
            }
            let rows = u32::try_from(band.len() / stride).expect("at most a band");
            // SAFETY: the band holds `rows` rows of `stride` bytes, which is what libjpeg writes for
            // so many components and columns; the bands end with the image.
            let status = unsafe { ffi::fb_jpeg_read_rows(raw, band.as_mut_ptr(), stride, rows) };
            open.0.check(status)?;
        }
        // SAFETY: `raw` is live.
        let warnings = unsafe { ffi::fb_jpeg_warnings(raw) };
        Ok((samples, warnings))
    }
}
