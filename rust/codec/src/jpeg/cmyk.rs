//! CMYK to RGB, as Pillow's `convert("RGB")` computes it (`cmyk2rgb` in `libImaging/Convert.c`).

/// Turns `columns` pixels of stored CMYK (255 - ink, Adobe's convention, which Pillow assumes for
/// every CMYK JPEG) into RGB at the row's start.
pub(super) fn rgb_in_place(row: &mut [u8], columns: usize) {
    for column in 0..columns {
        let at = 4 * column;
        let stored = [row[at], row[at + 1], row[at + 2], row[at + 3]];
        row[3 * column..3 * column + 3].copy_from_slice(&rgb(stored));
    }
}

/// RGB of inks as they are meant, which TIFF stores.
pub(crate) fn rgb_from_inks(inks: [u8; 4]) -> [u8; 3] {
    rgb(inks.map(|ink| 255 - ink))
}

fn rgb([c, m, y, k]: [u8; 4]) -> [u8; 3] {
    let white = u32::from(k);
    [c, m, y].map(|stored| {
        let product = u32::from(255 - stored) * white + 128;
        let shade = ((product >> 8) + product) >> 8;
        u8::try_from(white.saturating_sub(shade)).expect("at most 255")
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn inks_give_the_colour_that_pillow_gives() {
        assert_eq!(super::rgb([255 - 200, 255 - 40, 255 - 10, 255 - 30]), [49, 190, 216]);
        assert_eq!(super::rgb([255; 4]), [255; 3]);
        assert_eq!(super::rgb([0; 4]), [0; 3]);
    }
}
