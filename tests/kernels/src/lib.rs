//! Runs packed batches on the host: the same kernels' source, one thread after the other.

use forebay_cuda::pack::{Kernel, Packed, PackedMix};

type Function = unsafe extern "C" fn(
    blob: *const u8,
    scratch: *mut u8,
    jobs_offset: u64,
    tiles: u32,
    jobs: u32,
);

macro_rules! kernels {
    ($($name:ident),*) => {
        unsafe extern "C" {
            $(fn $name(blob: *const u8, scratch: *mut u8, jobs_offset: u64, tiles: u32, jobs: u32);)*
        }
    };
}

kernels!(
    fb_host_huffman_tables,
    fb_host_huffman_guess,
    fb_host_huffman_settle,
    fb_host_huffman_place,
    fb_host_huffman_write,
    fb_host_inverse_dct_all,
    fb_host_resample_across,
    fb_host_resample_down,
    fb_host_levels_to_tables,
    fb_host_add_layers,
    fb_host_erase,
    fb_threads_huffman_guess,
    fb_threads_huffman_settle,
    fb_threads_huffman_place,
    fb_threads_huffman_write,
    fb_threads_resample_across
);

unsafe extern "C" {
    fn fb_host_mix(parameter: *const u8, tiles: u32);
    fn fb_host_widened(bits: u16) -> f32;
    fn fb_host_narrowed(value: f32) -> u16;
    fn fb_host_narrowed_brain(value: f32) -> u16;
}

/// Runs a mix.
///
/// # Safety
/// It was packed for slots that are live host memory, and nobody else's.
pub unsafe fn mix(packed: &PackedMix) {
    // SAFETY: the caller's promise; `pack_mix` checked that the kernel stays inside the slots.
    unsafe { fb_host_mix(packed.parameter(), packed.tiles) }
}

/// A float16's value, by the kernels.
pub fn widened(bits: u16) -> f32 {
    // SAFETY: numbers in and out.
    unsafe { fb_host_widened(bits) }
}

/// The nearest float16 and bfloat16, by the kernels.
pub fn narrowed(value: f32) -> [u16; 2] {
    // SAFETY: numbers in and out.
    unsafe { [fb_host_narrowed(value), fb_host_narrowed_brain(value)] }
}

/// What the scratch holds before: anything but zeros must not matter.
const GARBAGE: u64 = 0xa5a5_a5a5_a5a5_a5a5;

/// Runs the launches, each to its end.
///
/// # Safety
/// Sources and slots of the packed items are addresses of live host memory: sources to be read,
/// slots to be written by nobody else.
pub unsafe fn run(packed: &Packed) {
    let mut scratch = scratch(packed.scratch_bytes);
    // SAFETY: the caller's promise.
    unsafe { run_in(packed, &mut scratch) }
}

/// Scratch memory of that many bytes.
pub fn scratch(bytes: u64) -> Vec<u64> {
    vec![GARBAGE; usize::try_from(bytes.div_ceil(8)).expect("host memory")]
}

/// As [`run`], in the scratch that the items were packed for.
///
/// # Safety
/// As for [`run`].
///
/// # Panics
/// If the scratch is too small.
pub unsafe fn run_in(packed: &Packed, scratch: &mut [u64]) {
    // SAFETY: the caller's promise.
    unsafe { run_by(in_turn, packed, scratch) }
}

/// As [`run_in`], but kernels whose threads work together get a thread of the host for each of a
/// block's: slow, and where a wait is missing wrong, sooner or later. Ends the process if threads
/// of a block wait differently often.
///
/// # Safety
/// As for [`run`]. One call at a time.
///
/// # Panics
/// As [`run_in`].
pub unsafe fn run_at_once(packed: &Packed, scratch: &mut [u64]) {
    // SAFETY: the caller's promise.
    unsafe { run_by(at_once, packed, scratch) }
}

fn at_once(kernel: Kernel) -> Function {
    match kernel {
        Kernel::HuffmanGuess => fb_threads_huffman_guess,
        Kernel::HuffmanSettle => fb_threads_huffman_settle,
        Kernel::HuffmanPlace => fb_threads_huffman_place,
        Kernel::HuffmanWrite => fb_threads_huffman_write,
        Kernel::ResampleAcross => fb_threads_resample_across,
        alone => in_turn(alone),
    }
}

fn in_turn(kernel: Kernel) -> Function {
    match kernel {
        Kernel::HuffmanTables => fb_host_huffman_tables,
        Kernel::HuffmanGuess => fb_host_huffman_guess,
        Kernel::HuffmanSettle => fb_host_huffman_settle,
        Kernel::HuffmanPlace => fb_host_huffman_place,
        Kernel::HuffmanWrite => fb_host_huffman_write,
        Kernel::InverseDct => fb_host_inverse_dct_all,
        Kernel::ResampleAcross => fb_host_resample_across,
        Kernel::ResampleDown => fb_host_resample_down,
        Kernel::Levels => fb_host_levels_to_tables,
        Kernel::Layers => fb_host_add_layers,
        Kernel::Erase => fb_host_erase,
    }
}

unsafe fn run_by(function: fn(Kernel) -> Function, packed: &Packed, scratch: &mut [u64]) {
    let blob = words(&packed.blob);
    assert!(size_of_val(scratch) as u64 >= packed.scratch_bytes, "the scratch is too small");
    let cleared = usize::try_from(packed.cleared_bytes / 8).expect("host memory");
    scratch[..cleared].fill(0);
    for launch in &packed.launches {
        let function = function(launch.kernel);
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
