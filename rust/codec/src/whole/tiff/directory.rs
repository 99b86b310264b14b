//! The first directory as bytes, where the `tiff` crate must be told something or kept from it.

use tiff::tags::Tag;

/// The first directory of a file.
struct Directory<'a> {
    little: bool,
    /// Bytes before its entries, which stand one after the other.
    start: usize,
    /// Bytes of an entry, and of one before its value.
    entry: (usize, usize),
    entries: &'a [u8],
}

impl<'a> Directory<'a> {
    /// As much of it as the file has.
    fn first(bytes: &'a [u8]) -> Option<Self> {
        let little = bytes.first()? == &b'I';
        let big = bytes.get(2..4)?.contains(&43);
        let (offset, count, entry) = if big { (8..16, 8, (20, 12)) } else { (4..8, 2, (12, 8)) };
        let at = usize::try_from(number(bytes.get(offset)?, little)).ok()?;
        let counted = number(bytes.get(at..at.checked_add(count)?)?, little);
        let start = at + count;
        let rest = bytes.get(start..)?;
        let length = usize::try_from(counted).ok()?.saturating_mul(entry.0).min(rest.len());
        Some(Self { little, start, entry, entries: &rest[..length] })
    }

    fn entries(&self) -> impl Iterator<Item = &'a [u8]> {
        self.entries.chunks_exact(self.entry.0)
    }
}

/// An unsigned number of a few bytes.
fn number(bytes: &[u8], little: bool) -> u64 {
    let join = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
    if little { bytes.iter().rev().fold(0, join) } else { bytes.iter().fold(0, join) }
}

/// Whether a text is longer than the file, on which the crate writes a line to stderr.
pub(super) fn has_endless_text(bytes: &[u8]) -> bool {
    const ASCII: u64 = 2;
    Directory::first(bytes).is_some_and(|directory| {
        let (_, before) = directory.entry;
        directory.entries().any(|entry| {
            let number = |of| number(&entry[of], directory.little);
            number(2..4) == ASCII && number(4..before) > bytes.len() as u64
        })
    })
}

/// Where the first directory says that pixels are numbers of a palette: the byte that is 3.
pub(super) fn palette_mark(bytes: &[u8]) -> Option<u64> {
    let directory = Directory::first(bytes)?;
    let (length, before) = directory.entry;
    let tag = u64::from(Tag::PhotometricInterpretation.to_u16());
    let place =
        directory.entries().position(|entry| number(&entry[..2], directory.little) == tag)?;
    let value = directory.start + place * length + before;
    let mark = bytes[value..].iter().take(4).position(|&byte| byte == 3)?;
    u64::try_from(value + mark).ok()
}
