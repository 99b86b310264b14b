//! Ranges for profilers that speak NVTX, such as Nsight Systems: what each thread does when.
//!
//! Off unless asked for: also without a profiler a range's text takes time.

use std::fmt;
use std::marker::PhantomData;

/// A range of this thread, which ends when this is dropped.
#[derive(Debug)]
#[must_use = "the range ends when this is dropped"]
pub(crate) struct Range {
    /// Ranges of a thread are a stack.
    not_send: PhantomData<*const ()>,
}

impl Range {
    /// Begins a range if they are asked for.
    pub(crate) fn begin(asked: bool, name: fmt::Arguments<'_>) -> Option<Self> {
        asked.then(|| {
            nvtx::range_push!("forebay {name}");
            Self { not_send: PhantomData }
        })
    }
}

impl Drop for Range {
    fn drop(&mut self) {
        nvtx::range_pop!();
    }
}
