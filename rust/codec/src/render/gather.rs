//! Rows of an image that is made from another, whole one.

use super::host::Host;
use super::pass::{PADDING, Rows};
use crate::pixel::gather::{self, Places, Whole};
use crate::{Error, Level};
use forebay_core::{Axis, Gather};
use std::ops::Range;

/// The new image's rows, made when they are asked for, as far as the pass reads them.
#[derive(Debug)]
pub(super) struct GatherRows<'a, const C: usize> {
    level: Level,
    gather: Gather,
    input: Whole<'a>,
    /// Those that the pass reads.
    columns: Range<u32>,
    places: Places,
    next: u32,
    row: Vec<u8>,
}

impl<'a, const C: usize> GatherRows<'a, C> {
    pub(super) fn new(level: Level, gather: Gather, host: &'a Host<'_>, x: &Axis) -> Self {
        let row = vec![0; gather.size(host.size()).width as usize * C + PADDING];
        Self {
            level,
            gather,
            input: host.all::<C>(),
            columns: x.extent().unwrap_or_default(),
            places: Places::default(),
            next: 0,
            row,
        }
    }
}

impl<const C: usize> Rows for GatherRows<'_, C> {
    fn next_row(&mut self) -> Result<&[u8], Error> {
        let pixels = self.row.len() - PADDING;
        let row = &mut self.row[..pixels];
        let columns = self.columns.clone();
        gather::row::<C>(
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
