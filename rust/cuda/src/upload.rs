//! Bytes of the host on their way to the device: many pieces, few copies.

use crate::Error;
use crate::driver::{DeviceBuffer, Event, PinnedBuffer, Stream};
use crate::pixels::{ALIGN, PinnedRange};
use crate::pool::{Loan, Pool};
use forebay_core::ports::HostBuffer;
use std::sync::Arc;

/// Pieces that are copied together.
#[derive(Debug, Default)]
pub(crate) struct Pieces(Vec<Piece>);

impl Pieces {
    /// Adds the `bytes` that begin `memory`, by way of `staging` if that is not page-locked; the
    /// number of the piece.
    ///
    /// # Errors
    /// There is no page-locked memory.
    pub(crate) fn add<'a>(
        &mut self,
        memory: impl Into<Option<&'a dyn HostBuffer>>,
        bytes: &[u8],
        staging: &Arc<Pool<PinnedBuffer>>,
    ) -> Result<usize, Error> {
        let pinned = memory.into().and_then(|memory| memory.as_any().downcast_ref::<PinnedRange>());
        let (chunk, from) = if let Some(pinned) = pinned {
            (Arc::clone(&pinned.chunk), pinned.offset)
        } else {
            let mut memory = staging.loan(bytes.len())?;
            memory.bytes_mut()[..bytes.len()].copy_from_slice(bytes);
            (Arc::new(memory), 0)
        };
        self.0.push(Piece { chunk, from, bytes: bytes.len() });
        Ok(self.0.len() - 1)
    }

    /// Plans the copies.
    pub(crate) fn uploads(&self) -> Uploads<'_> {
        Uploads::new(&self.0)
    }
}

/// Bytes in page-locked memory.
#[derive(Debug)]
struct Piece {
    chunk: Arc<Loan<PinnedBuffer>>,
    from: usize,
    bytes: usize,
}

/// How pieces come into one buffer on the device: neighbours by one copy.
#[derive(Debug)]
pub(crate) struct Uploads<'a> {
    copies: Vec<Upload<'a>>,
    /// Offset of each piece in the buffer, a multiple of [`ALIGN`].
    offsets: Vec<usize>,
    /// Length of the buffer, as well.
    pub(crate) bytes: usize,
}

#[derive(Debug)]
struct Upload<'a> {
    chunk: &'a Arc<Loan<PinnedBuffer>>,
    from: usize,
    end: usize,
    to: usize,
}

impl<'a> Uploads<'a> {
    fn new(pieces: &'a [Piece]) -> Self {
        let mut order: Vec<usize> = (0..pieces.len()).collect();
        order.sort_unstable_by_key(|&piece| {
            (Arc::as_ptr(&pieces[piece].chunk).addr(), pieces[piece].from)
        });
        let mut uploads = Self { copies: Vec::new(), offsets: vec![0; pieces.len()], bytes: 0 };
        for place in order {
            let Piece { chunk, from, bytes } = &pieces[place];
            let (from, end) = (*from, from + bytes);
            match uploads.copies.last_mut() {
                Some(last)
                    if Arc::ptr_eq(last.chunk, chunk)
                        && last.end.next_multiple_of(ALIGN) == from =>
                {
                    last.end = end;
                }
                _ => uploads.copies.push(Upload { chunk, from, end, to: uploads.bytes }),
            }
            let last = uploads.copies.last().expect("just pushed or extended");
            uploads.offsets[place] = last.to + from - last.from;
            uploads.bytes = (last.to + end - last.from).next_multiple_of(ALIGN);
        }
        uploads
    }

    /// Puts the copies into the stream.
    ///
    /// # Errors
    /// What the driver says; some may be in the stream then.
    ///
    /// # Safety
    /// - The pieces and `to`, of [`Uploads::bytes`] bytes, are kept, and not written, until the stream
    ///   has come this far.
    pub(crate) unsafe fn enqueue(&self, to: &DeviceBuffer, stream: &Stream) -> Result<(), Error> {
        for copy in &self.copies {
            // SAFETY: the caller's promise.
            unsafe { to.upload(copy.to, copy.bytes(), stream) }?;
        }
        Ok(())
    }

    /// Nobody else gets the pieces' memory before `event` has come.
    pub(crate) fn use_until(&self, event: &Arc<Event>) {
        self.copies.iter().for_each(|copy| copy.chunk.use_until(event));
    }

    /// Of each piece, in a buffer at that address.
    pub(crate) fn addresses(&self, buffer: u64) -> Vec<u64> {
        self.offsets.iter().map(|&offset| buffer + offset as u64).collect()
    }
}

impl Upload<'_> {
    /// Pieces that nobody writes any more, and the gaps between them, which nobody has.
    fn bytes(&self) -> &[u8] {
        let start = self.chunk.pointer().as_ptr();
        // SAFETY: the range lies in the chunk, which is initialised; whoever wrote to it has
        // handed it in.
        unsafe { std::slice::from_raw_parts(start.add(self.from), self.end - self.from) }
    }
}
