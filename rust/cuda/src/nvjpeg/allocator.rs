//! Whose memory nvJPEG works in: its callbacks, as a trait.

use nvjpeg_sys::{cudaStream_t, nvjpegDevAllocatorV2_t, nvjpegPinnedAllocatorV2_t};
use std::ffi::{c_int, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use std::sync::Arc;

/// Gives memory to nvJPEG and takes it back. Called on threads that decode, several at once, with
/// the device's context current.
///
/// # Safety
/// - `allocate` returns memory of the kind that [`Allocators`] names, of at least that many bytes,
///   aligned to 256, which nobody else uses until `free`.
pub unsafe trait Allocate: Send + Sync + fmt::Debug {
    /// Memory that `stream`, which may be null, will use first; None when there is none.
    fn allocate(&self, bytes: usize, stream: *mut c_void) -> Option<NonNull<c_void>>;

    /// Takes memory back once `stream` has come this far.
    ///
    /// # Safety
    /// - `allocate` returned it for that many bytes, and nobody uses it after the stream's work
    ///   so far.
    unsafe fn free(&self, memory: NonNull<c_void>, bytes: usize, stream: *mut c_void);
}

/// The allocators of a handle.
#[derive(Debug, Clone)]
pub struct Allocators {
    /// Of the device's memory.
    pub device: Arc<dyn Allocate>,
    /// Of page-locked memory of the host.
    pub pinned: Arc<dyn Allocate>,
}

/// Allocators as nvJPEG takes them, which is by pointers that stay where they are.
#[derive(Debug)]
pub(super) struct Callbacks {
    device: Context,
    pinned: Context,
}

type Context = Box<Arc<dyn Allocate>>;

impl Callbacks {
    pub(super) fn new(allocators: Allocators) -> Self {
        Self { device: Box::new(allocators.device), pinned: Box::new(allocators.pinned) }
    }

    /// Valid while `self` lives.
    pub(super) fn device(&self) -> nvjpegDevAllocatorV2_t {
        nvjpegDevAllocatorV2_t {
            dev_malloc: Some(allocate),
            dev_free: Some(free),
            dev_ctx: context(&self.device),
        }
    }

    /// Valid while `self` lives.
    pub(super) fn pinned(&self) -> nvjpegPinnedAllocatorV2_t {
        nvjpegPinnedAllocatorV2_t {
            pinned_malloc: Some(allocate),
            pinned_free: Some(free),
            pinned_ctx: context(&self.pinned),
        }
    }
}

fn context(allocator: &Context) -> *mut c_void {
    std::ptr::from_ref::<Arc<dyn Allocate>>(allocator).cast_mut().cast()
}

/// What a callback says when it fails: any number but 0, cudaErrorMemoryAllocation here.
const FAILED: c_int = 2;

/// # Safety
/// - `context` is one of a `Callbacks` that lives; `memory` may be written.
unsafe extern "C" fn allocate(
    context: *mut c_void,
    memory: *mut *mut c_void,
    bytes: usize,
    stream: cudaStream_t,
) -> c_int {
    // SAFETY: `context` made it of an `Arc<dyn Allocate>`, which the handle's `Callbacks` keeps.
    let allocator = unsafe { &*context.cast::<Arc<dyn Allocate>>() };
    // A panic must not unwind into nvJPEG.
    let found = catch_unwind(AssertUnwindSafe(|| allocator.allocate(bytes, stream.cast())));
    let Ok(Some(found)) = found else { return FAILED };
    // SAFETY: nvJPEG's own variable.
    unsafe { memory.write(found.as_ptr()) };
    0
}

/// # Safety
/// - `context` is one of a `Callbacks` that lives; `memory` came from `allocate`.
unsafe extern "C" fn free(
    context: *mut c_void,
    memory: *mut c_void,
    bytes: usize,
    stream: cudaStream_t,
) -> c_int {
    let Some(memory) = NonNull::new(memory) else { return 0 };
    // SAFETY: as in `allocate`.
    let allocator = unsafe { &*context.cast::<Arc<dyn Allocate>>() };
    let freed = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: nvJPEG gives back what it got, and is done with it in the stream's order.
        unsafe { allocator.free(memory, bytes, stream.cast()) };
    }));
    if freed.is_ok() { 0 } else { FAILED }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicIsize, Ordering};

    #[derive(Debug, Default)]
    struct Counting(AtomicIsize);

    // SAFETY: gives no memory that anybody uses.
    unsafe impl Allocate for Counting {
        fn allocate(&self, bytes: usize, _: *mut c_void) -> Option<NonNull<c_void>> {
            assert_ne!(bytes, 13, "panics on request");
            self.0.fetch_add(1, Ordering::Relaxed);
            (bytes < 100).then_some(NonNull::dangling())
        }

        unsafe fn free(&self, _: NonNull<c_void>, _: usize, _: *mut c_void) {
            self.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn callbacks_reach_their_allocator_and_failure_and_panic_are_codes() {
        let (device, pinned) = (Arc::new(Counting::default()), Arc::new(Counting::default()));
        let callbacks = Callbacks::new(Allocators {
            device: Arc::<Counting>::clone(&device),
            pinned: Arc::<Counting>::clone(&pinned),
        });
        let table = callbacks.device();
        let (malloc, free) = (table.dev_malloc.unwrap(), table.dev_free.unwrap());
        let mut memory = std::ptr::null_mut();
        let stream = std::ptr::null_mut();
        // SAFETY: `callbacks` lives, and the memory is not used.
        unsafe {
            assert_eq!(malloc(table.dev_ctx, &raw mut memory, 8, stream), 0);
            assert!(!memory.is_null());
            assert_eq!(device.0.load(Ordering::Relaxed), 1);
            assert_eq!(free(table.dev_ctx, memory, 8, stream), 0);
            assert_eq!(device.0.load(Ordering::Relaxed), 0);
            assert_eq!(malloc(table.dev_ctx, &raw mut memory, 200, stream), FAILED);
            assert_eq!(malloc(table.dev_ctx, &raw mut memory, 13, stream), FAILED);
        }
        assert_eq!(pinned.0.load(Ordering::Relaxed), 0);
    }
}
