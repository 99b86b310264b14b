//! The orientation that an EXIF block names; anything malformed is the identity, never an error.

use forebay_core::Orientation;

const TAG_ORIENTATION: u16 = 0x0112;
const TYPE_SHORT: u16 = 3;
const TYPE_LONG: u16 = 4;

/// Reads tag 0x0112 of the first directory of a TIFF structure.
pub(super) fn orientation(tiff: &[u8]) -> Orientation {
    tag(tiff).and_then(Orientation::from_exif).unwrap_or_default()
}

fn tag(tiff: &[u8]) -> Option<u16> {
    let little = match tiff.get(..4)? {
        b"II\x2a\0" => true,
        b"MM\0\x2a" => false,
        _ => return None,
    };
    let short = |at: usize| {
        let bytes: [u8; 2] = tiff.get(at..at.checked_add(2)?)?.try_into().ok()?;
        Some(if little { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) })
    };
    let long = |at: usize| {
        let bytes: [u8; 4] = tiff.get(at..at.checked_add(4)?)?.try_into().ok()?;
        Some(if little { u32::from_le_bytes(bytes) } else { u32::from_be_bytes(bytes) })
    };
    let directory = usize::try_from(long(4)?).ok()?;
    let entries = usize::from(short(directory)?);
    (0..entries)
        .map(|entry| directory.checked_add(2 + 12 * entry))
        .find(|&at| at.and_then(&short) == Some(TAG_ORIENTATION))
        .flatten()
        .and_then(|at| match short(at + 2)? {
            TYPE_SHORT => short(at + 8),
            TYPE_LONG => u16::try_from(long(at + 8)?).ok(),
            _ => None,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(little: bool, kind: u16, value: u16) -> Vec<u8> {
        let short = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let long = |v: u32| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let mut out = if little { b"II".to_vec() } else { b"MM".to_vec() };
        out.extend(short(42));
        out.extend(long(8));
        out.extend(short(1));
        out.extend(short(TAG_ORIENTATION));
        out.extend(short(kind));
        out.extend(long(1));
        out.extend(short(value));
        out.extend(short(0));
        out
    }

    #[test]
    fn both_byte_orders_are_read() {
        for value in 1..=8 {
            for little in [false, true] {
                assert_eq!(
                    Some(orientation(&block(little, TYPE_SHORT, value))),
                    Orientation::from_exif(value)
                );
            }
        }
    }

    #[test]
    fn malformed_blocks_are_the_identity() {
        let good = block(true, TYPE_SHORT, 6);
        for len in 0..good.len() - 2 {
            assert_eq!(orientation(&good[..len]), Orientation::default());
        }
        assert_eq!(orientation(&block(false, TYPE_SHORT, 9)), Orientation::default());
        assert_eq!(orientation(&block(false, 7, 6)), Orientation::default());
        let mut far = good;
        far[4..8].copy_from_slice(&[0xff; 4]);
        assert_eq!(orientation(&far), Orientation::default());
    }
}
