//! Axes of a resample as tables that the kernels read.

use super::Error;
use super::blob::Blob;
use super::descriptor::{self, Span, axis_kind};
use forebay_core::coeffs::Table;
use forebay_core::{Axis, Taps};

/// Refuses axes that read beyond an input of `input` positions, tables of wrong lengths, and such
/// whose outputs do not follow each other, from the left or from the right.
pub(super) fn check(axis: &Axis, input: u32) -> Result<(), Error> {
    let rows = content_len(axis) as u64;
    let inside = u64::from(axis.content_start) + rows <= u64::from(axis.out_len)
        && match &axis.taps {
            Taps::Copy(sources) => sources.iter().all(|&source| source < input),
            Taps::Weighted(table) => fits(table, input) && is_ordered(table),
        };
    if inside { Ok(()) } else { Err(Error::Axis { input }) }
}

fn fits(table: &Table, input: u32) -> bool {
    let rows = table.starts.len();
    table.counts.len() == rows
        && Some(table.weights.len()) == rows.checked_mul(table.taps as usize)
        && table.precision < 31
        && table.starts.iter().zip(&table.counts).all(|(&start, &count)| {
            (1..=table.taps).contains(&count)
                && start.checked_add(count).is_some_and(|end| end <= input)
        })
}

/// The across kernel keeps what lies between the first and the last output of a tile.
fn is_ordered(table: &Table) -> bool {
    let spans =
        || table.starts.iter().zip(&table.counts).map(|(&start, count)| (start, start + count));
    let goes = |right: bool| {
        spans().zip(spans().skip(1)).all(|(one, next)| {
            let (low, high) = if right { (one, next) } else { (next, one) };
            low.0 <= high.0 && low.1 <= high.1
        })
    };
    goes(true) || goes(false)
}

fn content_len(axis: &Axis) -> usize {
    match &axis.taps {
        Taps::Copy(sources) => sources.len(),
        Taps::Weighted(table) => table.starts.len(),
    }
}

/// Directions of [`Axes::describe`].
pub(super) const X: usize = 0;
pub(super) const Y: usize = 1;

/// Appends axes to a blob; the last one of either direction is shared with its equals, as images
/// of one size have when nothing is drawn.
#[derive(Debug, Default)]
pub(super) struct Axes<'a> {
    last: [Option<(&'a Axis, descriptor::Axis)>; 2],
}

impl<'a> Axes<'a> {
    /// The descriptor of a checked axis.
    pub(super) fn describe(
        &mut self,
        blob: &mut Blob,
        axis: &'a Axis,
        direction: usize,
    ) -> descriptor::Axis {
        if let Some((last, descriptor)) = self.last[direction]
            && last == axis
        {
            return descriptor;
        }
        let descriptor = describe(blob, axis);
        self.last[direction] = Some((axis, descriptor));
        descriptor
    }
}

fn describe(blob: &mut Blob, axis: &Axis) -> descriptor::Axis {
    let common = descriptor::Axis {
        out_len: axis.out_len,
        content_start: axis.content_start,
        content_len: axis.content_len(),
        ..descriptor::Axis::default()
    };
    match &axis.taps {
        Taps::Copy(sources) => match run(sources) {
            Some((first, step)) => descriptor::Axis { kind: axis_kind::RUN, first, step, ..common },
            None => {
                descriptor::Axis { kind: axis_kind::LIST, table: blob.append(sources), ..common }
            }
        },
        Taps::Weighted(table) => {
            let pairs = table.starts.iter().zip(&table.counts);
            let spans: Vec<Span> = pairs.map(|(&start, &count)| Span { start, count }).collect();
            descriptor::Axis {
                kind: axis_kind::WEIGHTED,
                table: blob.append(&spans),
                weights: blob.append(&tap_major(table)),
                precision: table.precision,
                ..common
            }
        }
    }
}

/// First source and step, if sources are consecutive in either direction.
fn run(sources: &[u32]) -> Option<(u32, i32)> {
    let first = *sources.first().unwrap_or(&0);
    let steps = |step: i32| {
        sources.windows(2).all(|pair| pair[0].checked_add_signed(step) == Some(pair[1]))
    };
    [1, -1].into_iter().find(|&step| steps(step)).map(|step| (first, step))
}

/// The weights in use, those of the first tap of all outputs first.
fn tap_major(table: &Table) -> Vec<i16> {
    let outputs = table.starts.len();
    let taps = table.counts.iter().max().map_or(0, |&count| count as usize);
    let mut weights = vec![0; taps * outputs];
    // A table without outputs may have no taps either.
    for (i, row) in table.weights.chunks_exact(table.taps.max(1) as usize).enumerate() {
        for (place, &weight) in weights.iter_mut().skip(i).step_by(outputs).zip(row) {
            *place = weight;
        }
    }
    weights
}
