//! The oracle: one look-up per element.

use super::Table;

/// Elements of one channel.
pub(super) fn channel<'a, const B: usize>(
    pixels: impl Iterator<Item = &'a u8>,
    table: &[[u8; B]; 256],
    out: &mut [u8],
) {
    for (out, &pixel) in out.as_chunks_mut::<B>().0.iter_mut().zip(pixels) {
        *out = table[usize::from(pixel)];
    }
}

pub(super) fn planes<const B: usize>(row: &[u8], table: &Table<B>, planes: [&mut [u8]; 3]) {
    for (c, plane) in planes.into_iter().enumerate() {
        channel(row.iter().skip(c).step_by(3), &table[c], plane);
    }
}

pub(super) fn planes_raw(row: &[u8], planes: [&mut [u8]; 3]) {
    for (c, plane) in planes.into_iter().enumerate() {
        plane.iter_mut().zip(row.iter().skip(c).step_by(3)).for_each(|(out, &pixel)| *out = pixel);
    }
}

pub(super) fn interleaved<const B: usize>(row: &[u8], table: &Table<B>, out: &mut [u8]) {
    let places = out.as_chunks_mut::<B>().0.as_chunks_mut::<3>().0;
    for (places, pixel) in places.iter_mut().zip(row.as_chunks::<3>().0) {
        for c in 0..3 {
            places[c] = table[c][usize::from(pixel[c])];
        }
    }
}
