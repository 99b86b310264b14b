//! The file as decoders of other crates read it.

use forebay_core::ports::Stop;
use std::io::{BufRead, Cursor, ErrorKind, Read, Seek, SeekFrom};

/// No reader of memory fails in this way by itself.
pub(super) const STOPPED: ErrorKind = ErrorKind::ConnectionAborted;
/// Compressed bytes between two looks at the stop flag.
const STOP_BYTES: usize = 1 << 14;

/// The file, handed out in pieces while nobody raises the flag (LIF-1).
pub(crate) struct Stoppable<'a> {
    bytes: Cursor<&'a [u8]>,
    stop: &'a Stop,
    /// A place at which another byte is read than the file has.
    patch: Option<(u64, [u8; 1])>,
}

impl<'a> Stoppable<'a> {
    pub(super) fn new(bytes: &'a [u8], stop: &'a Stop) -> Self {
        Self { bytes: Cursor::new(bytes), stop, patch: None }
    }

    /// Reads `byte` at `place`.
    pub(super) fn patched(self, place: u64, byte: u8) -> Self {
        Self { patch: Some((place, [byte])), ..self }
    }
}

impl Read for Stoppable<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Stoppable<'_> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        if self.stop.raised() {
            return Err(STOPPED.into());
        }
        let at = self.bytes.position();
        let rest = self.bytes.fill_buf()?;
        let rest = &rest[..rest.len().min(STOP_BYTES)];
        match &self.patch {
            Some((place, byte)) if *place == at && !rest.is_empty() => Ok(byte),
            Some((place, _)) if *place > at => {
                let before = usize::try_from(place - at).unwrap_or(usize::MAX);
                Ok(&rest[..rest.len().min(before)])
            }
            _ => Ok(rest),
        }
    }

    fn consume(&mut self, amount: usize) {
        self.bytes.consume(amount);
    }
}

impl Seek for Stoppable<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(to)
    }
}
