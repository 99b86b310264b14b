//! One pass: rows in, resampled across and then down, coloured, given to a sink.
//!
//! Rows come in order, once. Each is resampled across into a ring that holds as many as one output
//! row can need; an output row leaves as soon as its last input row is there, so flipped outputs
//! leave from the bottom up.

use super::Work;
use crate::Error;
use crate::pixel::color::Program;
use crate::pixel::horizontal::{self, Columns};
use crate::pixel::vertical::{self, Ring};
use forebay_core::{Axis, Pass, Size, Taps};

/// Output rows between two looks at the stop flag.
const STOP_ROWS: usize = 16;

/// Bytes behind a row of our own, so that wide loads of its last pixels stay inside the buffer.
pub(super) const PADDING: usize = 32;

/// A stream of rows; each slice begins with the row's pixels and may go on behind them.
pub(super) trait Rows {
    fn next_row(&mut self) -> Result<&[u8], Error>;

    /// Goes on without the next row's pixels.
    fn skip_row(&mut self) -> Result<(), Error> {
        self.next_row().map(|_| ())
    }
}

/// Takes output row `y`, over the whole width.
pub(super) type Sink<'a> = &'a mut dyn FnMut(usize, &[u8]);

/// Memory that passes use, kept between images.
#[derive(Debug, Default)]
pub(super) struct PassBuffers {
    columns: Columns,
    ring: Ring,
    /// One output row, over the whole width.
    row: Vec<u8>,
    order: Vec<u32>,
    /// Results of passes that were not the last one's.
    pub(super) spare: Vec<Vec<u8>>,
}

impl PassBuffers {
    /// Bytes that are held on to.
    pub(super) fn held(&self) -> usize {
        let spare: usize = self.spare.iter().map(Vec::capacity).sum();
        self.ring.held() + self.row.capacity() + spare
    }

    /// Runs `pass` on `rows` of an `input` with `C` channels.
    pub(super) fn run<const C: usize>(
        &mut self,
        work: &Work<'_>,
        rows: &mut dyn Rows,
        input: Size,
        pass: &Pass,
        program: &Program,
        sink: Sink<'_>,
    ) -> Result<(), Error> {
        let Self { columns, ring, row, order, .. } = self;
        columns.prepare(&pass.x);
        row.clear();
        let width = pass.x.out_len as usize;
        row.extend(pass.fill[..C].iter().cycle().take(width * C));
        let content = columns.len() * C;
        let content =
            pass.x.content_start as usize * C..pass.x.content_start as usize * C + content;

        let top = pass.y.content_start as usize;
        let bottom = top + pass.y.content_len() as usize;
        for y in (0..top).chain(bottom..pass.y.out_len as usize) {
            sink(y, row);
        }
        if content.is_empty() {
            (top..bottom).for_each(|y| sink(y, row));
            return Ok(());
        }

        order_by_start(&pass.y, order);
        ring.prepare(ring_rows(&pass.y, order), content.len());
        let mut read = 0;
        for (turn, &i) in order.iter().enumerate() {
            if turn % STOP_ROWS == 0 && work.stop.raised() {
                return Err(Error::Stopped);
            }
            let (start, end) = span(&pass.y, i as usize);
            while read < end {
                // Rows before `start` are not needed by this output, nor by any later one.
                if read < start {
                    rows.skip_row()?;
                } else {
                    let source = rows.next_row()?;
                    horizontal::resample::<C>(work.level, source, columns, ring.row_mut(read));
                }
                read += 1;
            }
            let y = top + i as usize;
            match &pass.y.taps {
                Taps::Copy(_) if program.is_empty() && content.len() == row.len() => {
                    sink(y, ring.row(start));
                    continue;
                }
                Taps::Copy(_) => row[content.clone()].copy_from_slice(ring.row(start)),
                Taps::Weighted(table) => {
                    let (first, weights) = table.row(i as usize);
                    let out = &mut row[content.clone()];
                    vertical::weighted(work.level, ring, first, weights, table.precision, out);
                }
            }
            if C == 3 {
                program.apply(work.level, &mut row[content.clone()]);
            } else {
                program.apply_to_gray(&mut row[content.clone()]);
            }
            sink(y, row);
        }
        debug_assert!(read <= input.height as usize, "plans were checked");
        Ok(())
    }
}

/// First input row of output `i`, and the one behind its last.
fn span(axis: &Axis, i: usize) -> (usize, usize) {
    match &axis.taps {
        Taps::Copy(sources) => (sources[i] as usize, sources[i] as usize + 1),
        Taps::Weighted(table) => {
            let start = table.starts[i] as usize;
            (start, start + table.counts[i] as usize)
        }
    }
}

/// Outputs by their first input; ascending and descending axes need no sort.
fn order_by_start(axis: &Axis, order: &mut Vec<u32>) {
    order.clear();
    order.extend(0..axis.content_len());
    let starts = match &axis.taps {
        Taps::Copy(sources) => sources,
        Taps::Weighted(table) => &table.starts,
    };
    if starts.is_sorted() {
        return;
    }
    order.reverse();
    if !starts.iter().rev().is_sorted() {
        order.sort_by_key(|&i| starts[i as usize]);
    }
}

/// The most rows that must be there at once: from an output's first to the last one read by then.
fn ring_rows(axis: &Axis, order: &[u32]) -> usize {
    let mut read = 0;
    let rows = order.iter().map(|&i| {
        let (start, end) = span(axis, i as usize);
        read = read.max(end);
        read - start
    });
    rows.max().unwrap_or(1)
}
