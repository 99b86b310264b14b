//! What the fused path is measured against: libjpeg-turbo by its own API, then a SIMD resample.

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use forebay_core::{Region, Size};
use turbojpeg_sys as tj;

/// A `TurboJPEG` handle with its defaults, which are those of PIX-1: accurate DCT, fancy upsampling.
pub(crate) struct TurboJpeg {
    handle: tj::tjhandle,
    pixels: Vec<u8>,
}

impl TurboJpeg {
    pub(crate) fn new() -> Self {
        // SAFETY: takes a number; null is checked.
        let handle = unsafe { tj::tj3Init(tj::TJINIT_TJINIT_DECOMPRESS.cast_signed()) };
        assert!(!handle.is_null(), "no memory for a decompressor");
        Self { handle, pixels: Vec::new() }
    }

    /// Decodes the whole image to RGB; false if it is not one of RGB or grey.
    pub(crate) fn whole(&mut self, bytes: &[u8]) -> bool {
        let Some(size) = self.header(bytes) else {
            return false;
        };
        let none = tj::tjregion { x: 0, y: 0, w: 0, h: 0 };
        self.decode(bytes, none, size)
    }

    /// Decodes the rows of `region` and its columns from the iMCU on in which they begin.
    /// Returns the pixels, their size, and the column at which the region begins in them.
    pub(crate) fn region(&mut self, bytes: &[u8], region: Region) -> Option<(&[u8], Size, u32)> {
        let size = self.header(bytes)?;
        // SAFETY: the handle is live; the parameter was set by the header.
        let sampling =
            unsafe { tj::tj3Get(self.handle, tj::TJPARAM_TJPARAM_SUBSAMP.cast_signed()) };
        let wide = [tj::TJSAMP_TJSAMP_422, tj::TJSAMP_TJSAMP_420];
        let step = if wide.contains(&sampling) { 16 } else { 8 };
        let left = region.x / step * step;
        let wanted = Size { width: region.x + region.width - left, height: region.height };
        let crop = tj::tjregion {
            x: left.cast_signed(),
            y: region.y.cast_signed(),
            w: wanted.width.cast_signed(),
            h: wanted.height.cast_signed(),
        };
        debug_assert!(region.fits(size));
        let fine = self.decode(bytes, crop, wanted);
        fine.then(|| (self.pixels.as_slice(), wanted, region.x - left))
    }

    fn header(&mut self, bytes: &[u8]) -> Option<Size> {
        // SAFETY: the handle is live, and `bytes` is read during the calls only.
        let (status, width, height) = unsafe {
            (
                tj::tj3DecompressHeader(self.handle, bytes.as_ptr(), bytes.len() as _),
                tj::tj3Get(self.handle, tj::TJPARAM_TJPARAM_JPEGWIDTH.cast_signed()),
                tj::tj3Get(self.handle, tj::TJPARAM_TJPARAM_JPEGHEIGHT.cast_signed()),
            )
        };
        (status == 0).then(|| Size { width: width.cast_unsigned(), height: height.cast_unsigned() })
    }

    fn decode(&mut self, bytes: &[u8], region: tj::tjregion, size: Size) -> bool {
        let length = size.pixels() as usize * 3;
        if self.pixels.len() < length {
            self.pixels.resize(length, 0);
        }
        // SAFETY: the handle is live; `pixels` holds the region's rows of three bytes a pixel.
        unsafe {
            tj::tj3SetCroppingRegion(self.handle, region) == 0
                && tj::tj3Decompress8(
                    self.handle,
                    bytes.as_ptr(),
                    bytes.len() as _,
                    self.pixels.as_mut_ptr(),
                    0,
                    tj::TJPF_TJPF_RGB,
                ) == 0
        }
    }
}

impl Drop for TurboJpeg {
    fn drop(&mut self) {
        // SAFETY: the handle came from init and is not used again.
        unsafe { tj::tj3Destroy(self.handle) };
    }
}

/// `fast_image_resize`'s antialiased bilinear resample to a square, 8 bits in and out.
pub(crate) struct Resample {
    resizer: Resizer,
    out: Image<'static>,
}

impl Resample {
    pub(crate) fn new(side: u32) -> Self {
        Self { resizer: Resizer::new(), out: Image::new(side, side, PixelType::U8x3) }
    }

    pub(crate) fn run(&mut self, pixels: &[u8], size: Size, left: u32) {
        let bytes = size.pixels() as usize * 3;
        let source = ImageRef::new(size.width, size.height, &pixels[..bytes], PixelType::U8x3)
            .expect("rows of three bytes a pixel");
        let options = ResizeOptions::new()
            .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
            .crop(f64::from(left), 0.0, f64::from(size.width - left), f64::from(size.height));
        self.resizer.resize(&source, &mut self.out, &options).expect("the crop is inside");
    }
}
