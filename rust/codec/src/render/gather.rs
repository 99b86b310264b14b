//! Rows of an image that is made from another, whole one.

use super::host::Host;
use super::pass::Rows;
use crate::pixel::gather::{self, Places, Whole};
use crate::{Error, Level};
use forebay_core::{Axis, Gather};
use std::ops::Range;

/// Bytes behind a row, so that wide loads of its last pixels stay inside the buffer.
const PADDING: usize = 32;

type Make = fn(Level, &Gather, Whole<'_>, u32, Range<u32>, &mut Places, &mut [u8]);

/// The new image's rows, made when they are asked for, as far as the pass reads them.
#[derive(Debug)]
pub(super) struct GatherRows<'a> {
    level: Level,
    gather: Gather,
    input: Whole<'a>,
    make: Make,
    /// Those that the pass reads.
    columns: Range<u32>,
    places: Places,
    next: u32,
    row: Vec<u8>,
}

impl<'a> GatherRows<'a> {
    pub(super) fn new<const C: usize>(
        level: Level,
        gather: Gather,
        host: &'a Host<'_>,
        x: &Axis,
    ) -> Self {
        let row = vec![0; gather.size(host.size()).width as usize * C + PADDING];
        let (input, make) = (host.all::<C>(), gather::row::<C>);
        let (left, right) = x.extent();
        Self {
            level,
            gather,
            input,
            make,
            columns: left..right,
            places: Places::default(),
            next: 0,
            row,
        }
    }
}

impl Rows for GatherRows<'_> {
    fn next_row(&mut self) -> Result<&[u8], Error> {
        let pixels = self.row.len() - PADDING;
        let row = &mut self.row[..pixels];
        let columns = self.columns.clone();
        (self.make)(
            self.level,
            &self.gather,
            self.input,
            self.next,
            columns,
            &mut self.places,
            row,
        );
        self.next += 1;
        Ok(&self.row)
    }

    fn skip_row(&mut self) -> Result<(), Error> {
        self.next += 1;
        Ok(())
    }
}
