//! The closed set of error kinds that every room's errors map to.

/// What kind of thing went wrong; decides the exception that Python raises.
///
/// The set is closed on purpose: it is matched without a wildcard everywhere, so a new kind is
/// a compile error wherever it needs an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// An argument has a value that makes no sense (`ValueError`).
    Invalid,
    /// An index is past the end (`IndexError`).
    Range,
    /// An argument has the wrong type (`TypeError`).
    Type,
    /// Encoded data is damaged (`ValueError` from an op, a failure value in a pipeline).
    Data,
    /// A valid request that this build or machine cannot serve (`NotImplementedError`).
    Unsupported,
    /// The operating system could not read (`OSError`).
    Io,
    /// The operating system found no such file (`FileNotFoundError`).
    NotFound,
    /// Host memory is exhausted (`MemoryError`).
    Memory,
    /// A device's memory is exhausted (`torch.OutOfMemoryError`).
    DeviceMemory,
    /// A device call failed (`RuntimeError`).
    Device,
    /// The pipeline is closed (`forebay.ClosedError`).
    Closed,
    /// A bug of ours (`RuntimeError`).
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order of declaration.
    pub const ALL: [Self; 12] = [
        Self::Invalid,
        Self::Range,
        Self::Type,
        Self::Data,
        Self::Unsupported,
        Self::Io,
        Self::NotFound,
        Self::Memory,
        Self::DeviceMemory,
        Self::Device,
        Self::Closed,
        Self::Internal,
    ];

    /// The letter that stands before a message while it crosses C++.
    ///
    /// ```
    /// assert_eq!(forebay_core::ErrorKind::Invalid.letter(), 'V');
    /// ```
    pub fn letter(self) -> char {
        match self {
            Self::Invalid => 'V',
            Self::Range => 'I',
            Self::Type => 'T',
            Self::Data => 'D',
            Self::Unsupported => 'N',
            Self::Io => 'F',
            Self::NotFound => 'P',
            Self::Memory => 'M',
            Self::DeviceMemory => 'O',
            Self::Device => 'G',
            Self::Closed => 'C',
            Self::Internal => 'X',
        }
    }
}

/// An error that knows its kind; each crate's error enum implements it.
pub trait HasKind: std::error::Error {
    /// The kind of this error.
    fn kind(&self) -> ErrorKind;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_distinct() {
        let letters: std::collections::BTreeSet<char> =
            ErrorKind::ALL.iter().map(|kind| kind.letter()).collect();
        assert_eq!(letters.len(), ErrorKind::ALL.len());
    }
}
