//! Rows of an image that is made from another, whole one.

use super::host::Host;
use super::pass::Rows;
use crate::pixel::gather::{self, Places, Whole};
use crate::{Error, Level};
use forebay_core::Gather;

/// Bytes behind a row, so that wide loads of its last pixels stay inside the buffer.
const PADDING: usize = 32;

/// The new image's rows, made when they are asked for.
#[derive(Debug)]
pub(super) struct GatherRows<'a> {
    level: Level,
    gather: Gather,
    input: Whole<'a>,
    make: fn(Level, &Gather, Whole<'_>, u32, &mut Places, &mut [u8]),
    places: Places,
    next: u32,
    row: Vec<u8>,
}

impl<'a> GatherRows<'a> {
    pub(super) fn new<const C: usize>(level: Level, gather: Gather, host: &'a Host<'_>) -> Self {
        let row = vec![0; gather.size(host.size()).width as usize * C + PADDING];
        let (input, make) = (host.all::<C>(), gather::row::<C>);
        Self { level, gather, input, make, places: Places::default(), next: 0, row }
    }
}

impl Rows for GatherRows<'_> {
    fn next_row(&mut self) -> Result<&[u8], Error> {
        let pixels = self.row.len() - PADDING;
        let row = &mut self.row[..pixels];
        (self.make)(self.level, &self.gather, self.input, self.next, &mut self.places, row);
        self.next += 1;
        Ok(&self.row)
    }
}
