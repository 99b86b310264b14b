//! Runs packed batches on the host: the same kernels' source, one thread after the other.

use forebay_cuda::pack::{Kernel, Packed};

type Function = unsafe extern "C" fn(
    blob: *const u8,
    scratch: *mut u8,
    jobs_offset: u64,
    tiles: u32,
    jobs: u32,
);

unsafe extern "C" {
    fn fb_host_inverse_dct(
        blob: *const u8,
        scratch: *mut u8,
        jobs_offset: u64,
        tiles: u32,
        jobs: u32,
    );
    fn fb_host_resample_across(
        blob: *const u8,
        scratch: *mut u8,
        jobs_offset: u64,
        tiles: u32,
        jobs: u32,
    );
    fn fb_host_resample_down(
        blob: *const u8,
        scratch: *mut u8,
        jobs_offset: u64,
        tiles: u32,
        jobs: u32,
    );
}

/// What the scratch holds before: anything but zeros must not matter.
const GARBAGE: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// Runs the launches, each to its end.
///
/// # Safety
/// Sources and slots of the packed items are addresses of live host memory: sources to be read,
/// slots to be written by nobody else.
pub unsafe fn run(packed: &Packed) {
    let blob = words(&packed.blob);
    let len = usize::try_from(packed.scratch_bytes.div_ceil(8)).expect("host memory");
    let mut scratch = vec![GARBAGE; len];
    let cleared = usize::try_from(packed.cleared_bytes / 8).expect("host memory");
    scratch[..cleared].fill(0);
    for launch in &packed.launches {
        let function: Function = match launch.kernel {
            Kernel::InverseDct => fb_host_inverse_dct,
            Kernel::ResampleAcross => fb_host_resample_across,
            Kernel::ResampleDown => fb_host_resample_down,
        };
        // SAFETY: the caller vouches for sources and slots; the blob is as it was packed, and the
        // scratch as large and as clear as it asks for.
        unsafe {
            function(
                blob.as_ptr().cast(),
                scratch.as_mut_ptr().cast(),
                launch.jobs_offset,
                launch.tiles,
                launch.jobs,
            );
        }
    }
}

/// The bytes at an aligned address.
fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_ne_bytes(word)
    };
    bytes.chunks(8).map(word).collect()
}
