//! Whole regions in host memory, read row by row.

use super::pass::Rows;
use crate::Error;
use crate::pixel::gather::Whole;
use forebay_core::ports::HostPixels;
use forebay_core::{Region, Size};
use std::borrow::Cow;

/// Side of the squares by which rows and columns change places: both sides stay in the cache.
const TILE: usize = 32;

/// Pixels of a region, interleaved.
#[derive(Debug)]
pub(super) struct Host<'a> {
    pixels: Cow<'a, [u8]>,
    size: Size,
    /// Bytes between two rows, and before the first.
    stride: usize,
    offset: usize,
    next: usize,
}

impl<'a> Host<'a> {
    /// An image that is its own region.
    pub(super) fn whole<const C: usize>(pixels: Vec<u8>, size: Size) -> Self {
        Self::crop::<C>(pixels, size, Region::whole(size))
    }

    /// A region of an image of `size`.
    pub(super) fn crop<const C: usize>(pixels: Vec<u8>, size: Size, region: Region) -> Self {
        let stride = size.width as usize * C;
        let offset = region.y as usize * stride + region.x as usize * C;
        Self { pixels: Cow::Owned(pixels), size: region.size(), stride, offset, next: 0 }
    }

    /// A region of somebody else's image of `size`.
    pub(super) fn view<const C: usize>(
        pixels: &'a [u8],
        size: Size,
        region: Region,
    ) -> Result<Self, Error> {
        if pixels.len() as u64 != size.pixels() * C as u64 {
            let what = format!("expected {size}x{C} bytes of rows, got {}", pixels.len());
            return Err(Error::Invalid { what });
        }
        let stride = size.width as usize * C;
        let offset = region.y as usize * stride + region.x as usize * C;
        let pixels = Cow::Borrowed(pixels);
        Ok(Self { pixels, size: region.size(), stride, offset, next: 0 })
    }

    /// Pixels that another decoder made.
    pub(super) fn borrow<const C: usize>(
        pixels: &'a HostPixels,
        region: Region,
    ) -> Result<Self, Error> {
        let size = region.size();
        let bytes = size.pixels() * C as u64;
        if pixels.region != region
            || pixels.channels != C
            || pixels.rows.bytes().len() as u64 != bytes
        {
            return Err(Error::internal(format!(
                "pixels of {:?} with {} channels where {region:?} with {C} are due",
                pixels.region, pixels.channels
            )));
        }
        let stride = size.width as usize * C;
        Ok(Self { pixels: Cow::Borrowed(pixels.rows.bytes()), size, stride, offset: 0, next: 0 })
    }

    /// All rows of a stream.
    pub(super) fn collect<const C: usize>(rows: &mut dyn Rows, size: Size) -> Result<Self, Error> {
        let line = size.width as usize * C;
        let mut pixels = Error::filled(0, line * size.height as usize, "a region")?;
        for row in pixels.chunks_exact_mut(line) {
            row.copy_from_slice(&rows.next_row()?[..line]);
        }
        Ok(Self::whole::<C>(pixels, size))
    }

    /// All pixels of an image that is its own region.
    pub(super) fn all<const C: usize>(&self) -> Whole<'_> {
        Whole::new::<C>(self.pixels::<C>(), self.size)
    }

    /// The same as bytes.
    pub(super) fn pixels<const C: usize>(&self) -> &[u8] {
        let bytes = self.size.width as usize * self.size.height as usize * C;
        &self.pixels[self.offset..self.offset + bytes]
    }

    /// The same image, from its first row on.
    pub(super) fn again(&self) -> Host<'_> {
        Host { pixels: Cow::Borrowed(&self.pixels), next: 0, ..*self }
    }

    /// The memory, if it is its own.
    pub(super) fn into_pixels(self) -> Option<Vec<u8>> {
        match self.pixels {
            Cow::Owned(pixels) => Some(pixels),
            Cow::Borrowed(_) => None,
        }
    }

    pub(super) fn size(&self) -> Size {
        self.size
    }

    /// Bytes that were written to make this.
    pub(super) fn owned_bytes(&self) -> u64 {
        match &self.pixels {
            Cow::Owned(pixels) => pixels.len() as u64,
            Cow::Borrowed(_) => 0,
        }
    }

    /// Rows and columns change places.
    pub(super) fn transposed<const C: usize>(&self) -> Result<Host<'static>, Error> {
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let mut out = Error::filled(0, width * height * C, "a turned image")?;
        for tile_y in (0..height).step_by(TILE) {
            let rows = tile_y..height.min(tile_y + TILE);
            for tile_x in (0..width).step_by(TILE) {
                for x in tile_x..width.min(tile_x + TILE) {
                    for y in rows.clone() {
                        let from = self.offset + y * self.stride + x * C;
                        let to = (x * height + y) * C;
                        out[to..to + C].copy_from_slice(&self.pixels[from..from + C]);
                    }
                }
            }
        }
        Ok(Host::whole::<C>(out, self.size.transposed()))
    }
}

impl Rows for Host<'_> {
    fn next_row(&mut self) -> Result<&[u8], Error> {
        let at = self.offset + self.next * self.stride;
        self.next += 1;
        Ok(&self.pixels[at..])
    }
}
