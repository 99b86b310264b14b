//! CCITT group 4 (T.6), with the code tables of the `fax` crate.
//!
//! Invariant: time is linear in the data and the pixels. Changes of a row increase strictly: two at
//! one place are none.

use crate::Error;
use fax::maps::{Mode, black, mode, white};
use fax::{BitReader, ByteReader};
use forebay_core::ports::Stop;
use forebay_core::{Format, Size};
use std::convert::Infallible;

/// Rows between two looks at the stop flag.
const STOP_ROWS: usize = 64;
/// The tables look at more bits than short codes have.
const PADDING: [u8; 4] = [0; 4];

/// A sample a byte, 1 where the paper is black.
pub(super) fn decode(
    data: &[u8],
    size: Size,
    reversed: bool,
    stop: &Stop,
) -> Result<Vec<u8>, Error> {
    let bytes = data.iter().map(|byte| if reversed { byte.reverse_bits() } else { *byte });
    let Ok(mut codes) = ByteReader::new(bytes.chain(PADDING).map(Ok::<u8, Infallible>));
    let (width, height) = (size.width as usize, size.height as usize);
    let mut pixels = Error::filled(0, width * height, "a fax")?;
    let (mut above, mut changes) = (Vec::new(), Vec::new());
    for (row, out) in pixels.chunks_exact_mut(width).enumerate() {
        if row % STOP_ROWS == 0 && stop.raised() {
            return Err(Error::Stopped);
        }
        changes.clear();
        read_row(&mut codes, &above, width, &mut changes).map_err(|fault| match fault {
            Fault::End => Error::truncated(format!("CCITT data for {row} rows, expected {height}")),
            Fault::Code => Error::damaged(Format::Tiff, format!("no CCITT code in row {row}")),
            Fault::Extension => Error::unsupported("TIFF with CCITT extensions"),
        })?;
        for run in changes.chunks(2) {
            let end = run.get(1).copied().unwrap_or(width);
            out[run[0]..end].fill(1);
        }
        std::mem::swap(&mut above, &mut changes);
    }
    Ok(pixels)
}

/// Why a row cannot be read.
enum Fault {
    End,
    Code,
    Extension,
}

/// The places at which the colour changes, from white on; `above` has those of the row before.
fn read_row(
    codes: &mut impl BitReader,
    above: &[usize],
    width: usize,
    changes: &mut Vec<usize>,
) -> Result<(), Fault> {
    // Pixels before it are known; at the row's start a change at 0 lies behind it, too.
    let (mut known, mut start) = (0, true);
    let mut is_black = false;
    let mut next = 0;
    while known < width {
        // The first change above behind the known pixels, to the other colour than theirs.
        while next > 0 && above[next - 1] > known {
            next -= 1;
        }
        while above.get(next).is_some_and(|&at| at < known || at == known && !start) {
            next += 1;
        }
        let other = next + usize::from(next % 2 != usize::from(is_black));
        let place = |change: usize| above.get(change).copied().unwrap_or(width);
        match mode::decode(codes) {
            Some(Mode::Pass) => known = place(other + 1),
            Some(Mode::Vertical(by)) => {
                let change = place(other).checked_add_signed(isize::from(by));
                known = change.filter(|at| (known..=width).contains(at)).ok_or(Fault::Code)?;
                push(changes, known, width);
                is_black = !is_black;
            }
            Some(Mode::Horizontal) => {
                for black in [is_black, !is_black] {
                    let run = read_run(codes, black).ok_or_else(|| fault(codes))?;
                    known = known.checked_add(run).filter(|&at| at <= width).ok_or(Fault::Code)?;
                    push(changes, known, width);
                }
            }
            Some(Mode::Extension) => return Err(Fault::Extension),
            Some(Mode::EOF) => return Err(Fault::End),
            None => return Err(fault(codes)),
        }
        start = false;
    }
    Ok(())
}

fn push(changes: &mut Vec<usize>, at: usize, width: usize) {
    if changes.last() == Some(&at) {
        changes.pop();
    } else if at < width {
        changes.push(at);
    }
}

/// A run of a colour: codes of multiples of 64, then one of less.
fn read_run(codes: &mut impl BitReader, is_black: bool) -> Option<usize> {
    let mut run = 0_usize;
    loop {
        let part = if is_black { black::decode(codes) } else { white::decode(codes) }?;
        run = run.checked_add(usize::from(part))?;
        if part < 64 {
            return Some(run);
        }
    }
}

/// No code begins with so many zeros, which stand behind the data.
fn fault(codes: &impl BitReader) -> Fault {
    if codes.peek(12).is_none_or(|bits| bits == 0) { Fault::End } else { Fault::Code }
}
