//! A million names as two allocations: their bytes end to end, and where each ends.

use crate::Error;

/// A list of byte strings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    bytes: Vec<u8>,
    /// One more than there are names; the first is 0.
    offsets: Vec<u64>,
}

impl Default for Names {
    fn default() -> Self {
        Self { bytes: Vec::new(), offsets: vec![0] }
    }
}

impl Names {
    /// Takes names apart by `offsets`: name `i` is `bytes[offsets[i]..offsets[i + 1]]`.
    ///
    /// # Errors
    /// Offsets do not begin at 0, descend, or do not end where the bytes do.
    pub fn new(bytes: Vec<u8>, offsets: &[i64]) -> Result<Self, Error> {
        let wrong = |problem: String| Error::Names { problem };
        let offsets: Vec<u64> = offsets
            .iter()
            .map(|&offset| u64::try_from(offset))
            .collect::<Result<_, _>>()
            .map_err(|_| wrong("offsets must not be negative".into()))?;
        if offsets.first() != Some(&0) || offsets.last() != Some(&(bytes.len() as u64)) {
            let problem = format!("offsets must run from 0 to the {} bytes given", bytes.len());
            return Err(wrong(problem));
        }
        match offsets.windows(2).position(|pair| pair[0] > pair[1]) {
            Some(at) => Err(wrong(format!("offsets descend after number {at}"))),
            None => Ok(Self { bytes, offsets }),
        }
    }

    /// Appends a name.
    pub fn push(&mut self, name: &[u8]) {
        self.bytes.extend_from_slice(name);
        self.offsets.push(self.bytes.len() as u64);
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name `i`.
    ///
    /// # Panics
    /// If `i` is past the end.
    pub fn get(&self, i: usize) -> &[u8] {
        let at = |i: usize| usize::try_from(self.offsets[i]).expect("offsets lie inside the bytes");
        &self.bytes[at(i)..at(i + 1)]
    }

    /// All names' bytes, end to end.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where each name ends, after a 0.
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_apart_where_they_were_joined() {
        let names = Names::new(b"a bcd[e]".to_vec(), &[0, 1, 1, 8]).unwrap();
        let all: Vec<&[u8]> = (0..names.len()).map(|i| names.get(i)).collect();
        assert_eq!(all, [&b"a"[..], b"", b" bcd[e]"]);
    }

    #[test]
    fn offsets_that_lie_are_refused() {
        for offsets in [&[][..], &[0, 4], &[1, 3], &[0, 2, 1, 3], &[0, -1, 3]] {
            assert!(Names::new(b"abc".to_vec(), offsets).is_err(), "{offsets:?}");
        }
    }
}
