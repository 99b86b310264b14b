//! Which JPEGs a GPU's engines decode to the same components as libjpeg, and how those are sampled.

use forebay_core::Sampling;

/// What markers say about colours, as far as libjpeg listens to it.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct ColourMarkers {
    pub(super) jfif: bool,
    /// The transform of an Adobe marker.
    pub(super) adobe: Option<u8>,
}

impl ColourMarkers {
    /// Takes note of an application segment.
    pub(super) fn see(&mut self, app: u8, segment: &[u8]) {
        match (app, segment) {
            (0, [b'J', b'F', b'I', b'F', 0, rest @ ..]) if rest.len() >= 9 => self.jfif = true,
            (14, [b'A', b'd', b'o', b'b', b'e', rest @ ..]) if rest.len() >= 7 => {
                self.adobe = Some(rest[6]);
            }
            _ => {}
        }
    }

    /// Whether libjpeg takes three components for Y, Cb and Cr (`default_decompress_parms`).
    fn is_ycbcr(self, ids: [u8; 3]) -> bool {
        match self.adobe {
            _ if self.jfif => true,
            Some(transform) => transform != 0,
            None => ids != *b"RGB",
        }
    }
}

/// Sampling of Y, Cb and Cr, from the frame header's table of id, factors and quantisation for each
/// component; `None` where the components are others, or their ratios not whole.
pub(super) fn sampling(table: &[u8], markers: ColourMarkers) -> Option<[Sampling; 3]> {
    let &[a, luma, _, b, cb, _, c, cr, _] = table else {
        return None;
    };
    if !markers.is_ycbcr([a, b, c]) {
        return None;
    }
    let factors = [luma, cb, cr].map(|factors| (factors >> 4, factors & 15));
    let most = factors.iter().fold((1, 1), |(h, v), &(h1, v1)| (h.max(h1), v.max(v1)));
    let whole = factors.iter().all(|&(h, v)| most.0 % h == 0 && most.1 % v == 0);
    let is_luma_whole = factors[0] == most;
    (whole && is_luma_whole)
        .then(|| factors.map(|(h, v)| Sampling { across: most.0 / h, down: most.1 / v }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(luma: u8, chroma: u8) -> [u8; 9] {
        [1, luma, 0, 2, chroma, 1, 3, chroma, 1]
    }

    fn ratio(table: &[u8]) -> Option<(u8, u8)> {
        sampling(table, ColourMarkers::default()).map(|found| (found[1].across, found[1].down))
    }

    #[test]
    fn ratios_are_those_of_the_largest_factors() {
        assert_eq!(ratio(&table(0x22, 0x11)), Some((2, 2)));
        assert_eq!(ratio(&table(0x11, 0x11)), Some((1, 1)));
        assert_eq!(ratio(&table(0x41, 0x11)), Some((4, 1)));
        assert_eq!(ratio(&table(0x31, 0x21)), None, "3 to 2");
        assert_eq!(ratio(&table(0x11, 0x21)), None, "luma with less than chroma");
        assert_eq!(ratio(&table(0x11, 0x11)[..3]), None, "grey");
    }

    #[test]
    fn colours_are_what_libjpeg_takes_them_for() {
        let rgb = [b'R', 0x11, 0, b'G', 0x11, 0, b'B', 0x11, 0];
        let with = |app: &[(u8, &[u8])], table: &[u8]| {
            let mut markers = ColourMarkers::default();
            for &(app, segment) in app {
                markers.see(app, segment);
            }
            sampling(table, markers).is_some()
        };
        let jfif: (u8, &[u8]) = (0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
        let plain: (u8, &[u8]) = (14, b"Adobe\0\x64\0\0\0\0\0");
        let ycc: (u8, &[u8]) = (14, b"Adobe\0\x64\0\0\0\0\x01");
        assert!(!with(&[], &rgb));
        assert!(with(&[jfif], &rgb));
        assert!(with(&[ycc], &rgb));
        assert!(!with(&[plain], &table(0x11, 0x11)));
        assert!(with(&[jfif, plain], &table(0x11, 0x11)), "JFIF comes first");
    }
}
