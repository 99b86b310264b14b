//! JPEG rows of one region, by libjpeg-turbo behind the C shim.
//!
//! Invariants: the rows equal those of a whole decode at the same size with the accurate integer
//! DCT and fancy upsampling (PIX-1); the stop flag is looked at every band of rows (LIF-1).

mod cmyk;
mod embedded;
mod ffi;
mod window;

pub(crate) use cmyk::rgb_from_inks;

use crate::Error;
use forebay_core::ports::Stop;
use forebay_core::{Region, Size};
use std::ffi::{CStr, c_int, c_void};
use std::ptr::NonNull;
// libturbojpeg.a, which holds libjpeg's functions, is linked because of this.
use turbojpeg_sys as _;

/// Rows read at once; of a 500 pixel wide image they take 24 KiB and stay in the cache.
const BAND_ROWS: u32 = 16;
/// Bytes behind the last row, so that wide loads of its last pixels stay inside the buffer.
const PADDING: usize = 32;
/// Rows skipped between two looks at the stop flag.
const SKIP_ROWS: u32 = 1024;

/// Version of libjpeg-turbo, as in `"3.1.0"`.
pub fn version() -> &'static str {
    // SAFETY: the shim returns the address of a string literal.
    let text = unsafe { CStr::from_ptr(ffi::fb_jpeg_version()) };
    text.to_str().unwrap_or("unknown")
}

/// What is decoded of an image.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Of the whole image, as its header says.
    pub(crate) size: Size,
    /// Decode at `1 / by` of the size: 1, 2, 4 or 8.
    pub(crate) by: u32,
    /// At that size.
    pub(crate) region: Region,
    /// Read all by libjpeg.
    pub(crate) careful: bool,
}

/// A reusable libjpeg object: one image at a time.
#[derive(Debug)]
pub(crate) struct Decompressor {
    raw: NonNull<ffi::Jpeg>,
}

impl Decompressor {
    pub(crate) fn new() -> Result<Self, Error> {
        // SAFETY: takes no arguments; returns an object of ours or null.
        NonNull::new(unsafe { ffi::fb_jpeg_create() })
            .map(|raw| Self { raw })
            .ok_or_else(|| Error::Memory { what: "JPEG decompressor".to_owned() })
    }

    /// Reads the header of `bytes` and starts decoding what is asked of it into `band`. Unless
    /// that is careful, reading may end with [`Error::Irregular`]: the caller then starts over.
    pub(crate) fn rows<'a>(
        &'a mut self,
        bytes: &'a [u8],
        asked: Asked,
        stop: &'a Stop,
        band: &'a mut Vec<u8>,
    ) -> Result<Rows<'a>, Error> {
        let Asked { size, by, region, .. } = asked;
        let header = self.open(bytes, stop)?;
        let mut rows = Rows {
            cmyk: header.colour == ffi::COLOUR_CMYK,
            owner: self,
            stop,
            band,
            stride: 0,
            margin: 0,
            width: region.width as usize,
            left: region.height,
            buffered: 0,
            taken: 0,
        };
        let found = Size { width: header.width, height: header.height };
        let decoded = Size { width: size.width.div_ceil(by), height: size.height.div_ceil(by) };
        if found != size || !region.fits(decoded) {
            return Err(Error::internal(format!("probed {size}, found {found}, asked {asked:?}")));
        }
        rows.start(asked)?;
        Ok(rows)
    }

    /// Reads the header. Whoever calls it borrows `bytes` and `stop` until the image is closed.
    fn open(&mut self, bytes: &[u8], stop: &Stop) -> Result<ffi::Header, Error> {
        let mut header = ffi::Header::default();
        // SAFETY: `raw` is live and borrowed mutably; `bytes` and `stop` outlive the `Rows` or
        // `Window` that borrows them, whose drop closes the image; `header` is written before the
        // call returns.
        let status = unsafe {
            ffi::fb_jpeg_open(
                self.raw.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                poll,
                std::ptr::from_ref(stop).cast(),
                &raw mut header,
            )
        };
        self.check(status)?;
        Ok(header)
    }

    fn check(&self, status: c_int) -> Result<(), Error> {
        if status == ffi::OK {
            return Ok(());
        }
        // SAFETY: `raw` is live; the text is NUL-terminated inside the object and copied here.
        let what = unsafe { CStr::from_ptr(ffi::fb_jpeg_message(self.raw.as_ptr())) }
            .to_string_lossy()
            .into_owned();
        Err(match status {
            ffi::DAMAGED => Error::jpeg(what),
            ffi::UNSUPPORTED => Error::unsupported(format!("this kind of JPEG ({what})")),
            ffi::MEMORY => Error::Memory { what },
            ffi::STOPPED => Error::Stopped,
            ffi::IRREGULAR => Error::Irregular { damaged: false },
            ffi::IMPOSSIBLE => Error::Irregular { damaged: true },
            _ => Error::internal(format!("libjpeg: {what}")),
        })
    }
}

impl Drop for Decompressor {
    fn drop(&mut self) {
        // SAFETY: `raw` came from create and is not used again.
        unsafe { ffi::fb_jpeg_destroy(self.raw.as_ptr()) }
    }
}

/// Called by libjpeg's progress monitor; must not panic, and only loads a flag.
unsafe extern "C" fn poll(stop: *const c_void) -> c_int {
    // SAFETY: `Decompressor::rows` passed a `&Stop` that outlives the open image.
    let stop = unsafe { &*stop.cast::<Stop>() };
    c_int::from(stop.raised())
}

/// The rows of a region, top to bottom, in RGB.
#[derive(Debug)]
pub(crate) struct Rows<'a> {
    owner: &'a mut Decompressor,
    stop: &'a Stop,
    band: &'a mut Vec<u8>,
    cmyk: bool,
    /// Bytes between two rows of the band.
    stride: usize,
    /// Decoded columns left of the region.
    margin: usize,
    width: usize,
    /// Rows of the region that are not in the band yet.
    left: u32,
    /// Rows that the band holds, and how many of them were given out.
    buffered: usize,
    taken: usize,
}

impl Rows<'_> {
    fn start(&mut self, asked: Asked) -> Result<(), Error> {
        let Asked { region, by, careful, .. } = asked;
        let raw = self.owner.raw.as_ptr();
        let mut columns = ffi::Columns::default();
        // SAFETY: `raw` is live and open; `columns` is written before the call returns.
        let status = unsafe {
            let careful = c_int::from(careful);
            ffi::fb_jpeg_start(raw, by, region.x, region.width, careful, &raw mut columns)
        };
        self.owner.check(status)?;
        let mut above = region.y;
        while above > 0 {
            let rows = above.min(SKIP_ROWS);
            // SAFETY: `raw` is live; there are more rows, since the region fits the image.
            let status = unsafe { ffi::fb_jpeg_skip_rows(raw, rows) };
            self.owner.check(status)?;
            self.look_at_stop()?;
            above -= rows;
        }
        self.margin = (region.x - columns.x) as usize;
        self.stride = columns.width as usize * if self.cmyk { 4 } else { 3 };
        let rows = BAND_ROWS.min(region.height) as usize;
        let need = self.stride * rows + PADDING;
        if self.band.len() < need {
            self.band.resize(need, 0);
        }
        Ok(())
    }

    /// Damage that libjpeg worked around so far.
    pub(crate) fn warnings(&self) -> u32 {
        // SAFETY: `raw` is live.
        unsafe { ffi::fb_jpeg_warnings(self.owner.raw.as_ptr()) }
    }

    /// After the image's last row: reads on to its end, and counts the damage there. libjpeg's
    /// refusal of what stands there is an error.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        // SAFETY: `raw` is live and open; the shim reports it if rows are left.
        let status = unsafe { ffi::fb_jpeg_finish(self.owner.raw.as_ptr()) };
        self.owner.check(status)
    }

    /// The next row; the slice begins with the region's pixels and may hold bytes behind them.
    pub(crate) fn next_row(&mut self) -> Result<&mut [u8], Error> {
        if self.taken == self.buffered {
            self.fill()?;
        }
        let row = self.taken * self.stride;
        self.taken += 1;
        Ok(&mut self.band[row + 3 * self.margin..])
    }

    fn fill(&mut self) -> Result<(), Error> {
        self.look_at_stop()?;
        let rows = self.left.min(BAND_ROWS);
        if rows == 0 {
            return Err(Error::internal("read past the region's last row"));
        }
        // SAFETY: `start` made the band hold `BAND_ROWS` rows of `stride` bytes, which is what
        // libjpeg writes for the columns that it reported; the object is live and open.
        let status = unsafe {
            ffi::fb_jpeg_read_rows(
                self.owner.raw.as_ptr(),
                self.band.as_mut_ptr(),
                self.stride,
                rows,
            )
        };
        self.owner.check(status)?;
        self.left -= rows;
        self.buffered = rows as usize;
        self.taken = 0;
        if self.cmyk {
            let columns = self.margin + self.width;
            for row in self.band[..self.stride * self.buffered].chunks_exact_mut(self.stride) {
                cmyk::rgb_in_place(row, columns);
            }
        }
        Ok(())
    }

    fn look_at_stop(&self) -> Result<(), Error> {
        if self.stop.raised() { Err(Error::Stopped) } else { Ok(()) }
    }
}

impl Drop for Rows<'_> {
    fn drop(&mut self) {
        // SAFETY: `raw` is live; closing frees what the image took and forgets `bytes` and `stop`.
        unsafe { ffi::fb_jpeg_close(self.owner.raw.as_ptr()) }
    }
}
