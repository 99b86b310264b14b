//! Planes of decoded pixels, read as interleaved rows.

use super::pass::{PADDING, Rows};
use crate::Error;
use forebay_core::{Region, Size};

/// The rows of a region of an image whose channels lie in planes.
#[derive(Debug)]
pub(super) struct PlanarRows<'a, const C: usize> {
    pixels: &'a [u8],
    size: Size,
    region: Region,
    next: usize,
    row: Vec<u8>,
}

impl<'a, const C: usize> PlanarRows<'a, C> {
    pub(super) fn new(pixels: &'a [u8], size: Size, region: Region) -> Result<Self, Error> {
        if pixels.len() as u64 != size.pixels() * C as u64 {
            let what = format!("expected {C}x{size} bytes of planes, got {}", pixels.len());
            return Err(Error::Invalid { what });
        }
        let row = vec![0; region.width as usize * C + PADDING];
        Ok(Self { pixels, size, region, next: region.y as usize, row })
    }
}

impl<const C: usize> Rows for PlanarRows<'_, C> {
    fn next_row(&mut self) -> Result<&[u8], Error> {
        let (width, height) = (self.size.width as usize, self.size.height as usize);
        let (left, count) = (self.region.x as usize, self.region.width as usize);
        for channel in 0..C {
            let start = (channel * height + self.next) * width + left;
            let plane = &self.pixels[start..start + count];
            for (pixel, &value) in self.row.chunks_exact_mut(C).zip(plane) {
                pixel[channel] = value;
            }
        }
        self.next += 1;
        Ok(&self.row)
    }
}
