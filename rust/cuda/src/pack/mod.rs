//! A batch's plans as bytes that the render kernels read, and the launches that run them.
//!
//! `scan` has files decoded, `source` says where decoded pixels lie, `check` refuses what does not fit, `axis` and `write`
//! make tables, `areas` memory, `steps` descriptors, `batch` jobs and launches, `descriptor` is `cpp/kernels/render.h`.
//!
//! **Invariants**
//! - PIX-3: on the same decoded pixels the kernels write what the CPU's executor writes, bit for
//!   bit: tables come from the plan and from `Write::value`, rounding is the kernels'.
//! - No launch reads or writes outside the sources, the slots, the blob and the scratch.
//! - The blob holds offsets, no addresses of its own or of the scratch.

mod areas;
mod axis;
mod batch;
mod blob;
mod blocks;
mod check;
mod descriptor;
mod error;
mod mix;
mod scan;
mod source;
mod steps;
mod write;

pub use blocks::{Blocks, Laid, lay_out};
pub use error::Error;
pub use mix::{PackedMix, pack_mix};
pub use scan::{MAX_FILE, Scan, ScanItem, ScanScratch, pack_scans};
pub use source::{Component, Plane, Source};

use batch::Batch;
use blob::Scratch;
use forebay_core::ImagePlan;

/// The kernels' program and the headers that it includes, by name.
pub const SOURCES: &[(&str, &str)] = &[
    ("render.cu", include_str!("../../../../cpp/kernels/render.cu")),
    ("render.h", include_str!("../../../../cpp/kernels/render.h")),
    ("pixel.h", include_str!("../../../../cpp/kernels/pixel.h")),
    ("ycbcr.h", include_str!("../../../../cpp/kernels/ycbcr.h")),
    ("source.h", include_str!("../../../../cpp/kernels/source.h")),
    ("across.h", include_str!("../../../../cpp/kernels/across.h")),
    ("down.h", include_str!("../../../../cpp/kernels/down.h")),
    ("weigh.h", include_str!("../../../../cpp/kernels/weigh.h")),
    ("gather.h", include_str!("../../../../cpp/kernels/gather.h")),
    ("huffman.h", include_str!("../../../../cpp/kernels/huffman.h")),
    ("chunk.h", include_str!("../../../../cpp/kernels/chunk.h")),
    ("codes.h", include_str!("../../../../cpp/kernels/codes.h")),
    ("bits.h", include_str!("../../../../cpp/kernels/bits.h")),
    ("scan.h", include_str!("../../../../cpp/kernels/scan.h")),
    ("idct.h", include_str!("../../../../cpp/kernels/idct.h")),
    ("mix.h", include_str!("../../../../cpp/kernels/mix.h")),
    ("noise.h", include_str!("../../../../cpp/kernels/noise.h")),
    ("layers.h", include_str!("../../../../cpp/kernels/layers.h")),
    ("levels.h", include_str!("../../../../cpp/kernels/levels.h")),
    ("color.h", include_str!("../../../../cpp/kernels/color.h")),
    ("device.h", include_str!("../../../../cpp/kernels/device.h")),
];

/// NVRTC's options beside `--gpu-architecture`. Contraction would change colours' last bits.
pub const COMPILE_OPTIONS: &[&str] = &[
    "--std=c++17",
    "--fmad=false",
    "--device-as-default-execution-space",
    "--pre-include=device.h",
];

/// Threads of a block, along x.
pub const BLOCK_THREADS: u32 = descriptor::BLOCK;

/// What the addresses of blob and scratch must be multiples of; multiples of 128 are faster.
pub const ALIGN: usize = blob::ALIGN;

/// One image to render.
#[derive(Debug, Clone, Copy)]
pub struct RenderItem<'a> {
    /// Its decoded pixels.
    pub source: Source,
    /// What to do.
    pub plan: &'a ImagePlan,
    /// Address of the slot.
    pub slot: u64,
    /// Length of the slot.
    pub slot_bytes: usize,
}

/// A kernel by what it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Huffman tables as the file has them, into such that are looked up.
    HuffmanTables,
    /// What is in each chunk of a file, from a guess where its first code begins.
    HuffmanGuess,
    /// The same, from where the chunk before has ended.
    HuffmanSettle,
    /// Counts into places.
    HuffmanPlace,
    /// Codes into blocks of coefficients.
    HuffmanWrite,
    /// Blocks of coefficients into planes.
    InverseDct,
    /// Columns of rows, into the scratch.
    ResampleAcross,
    /// Rows, colour, and the write to a slot or to the scratch.
    ResampleDown,
    /// Counts of values into tables.
    Levels,
    /// Images into sums.
    Layers,
    /// Parts of slots that hold one value.
    Erase,
}

impl Kernel {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::HuffmanTables,
        Self::HuffmanGuess,
        Self::HuffmanSettle,
        Self::HuffmanPlace,
        Self::HuffmanWrite,
        Self::InverseDct,
        Self::ResampleAcross,
        Self::ResampleDown,
        Self::Levels,
        Self::Layers,
        Self::Erase,
    ];

    /// Its `extern "C"` name.
    pub fn name(self) -> &'static str {
        match self {
            Self::HuffmanTables => "fb_huffman_tables",
            Self::HuffmanGuess => "fb_huffman_guess",
            Self::HuffmanSettle => "fb_huffman_settle",
            Self::HuffmanPlace => "fb_huffman_place",
            Self::HuffmanWrite => "fb_huffman_write",
            Self::InverseDct => "fb_inverse_dct_all",
            Self::ResampleAcross => "fb_resample_across",
            Self::ResampleDown => "fb_resample_down",
            Self::Levels => "fb_levels_to_tables",
            Self::Layers => "fb_add_layers",
            Self::Erase => "fb_erase",
        }
    }
}

/// One launch: a grid of `(tiles, jobs)` blocks of [`BLOCK_THREADS`], with the arguments
/// (address of the blob, address of the scratch, `jobs_offset`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// What is launched.
    pub kernel: Kernel,
    /// Where the launch's jobs lie in the blob.
    pub jobs_offset: u64,
    /// Number of jobs, at least 1.
    pub jobs: u32,
    /// Blocks of the largest job, at least 1; the others' end early.
    pub tiles: u32,
}

/// A batch, ready to be uploaded.
#[derive(Debug, Default)]
pub struct Packed {
    /// To be copied to device memory as it is.
    pub blob: Vec<u8>,
    /// Device memory that the launches share, of any contents but for its beginning.
    pub scratch_bytes: u64,
    /// Bytes at the beginning of the scratch that must be zero when the first launch starts.
    pub cleared_bytes: u64,
    /// In order, on one stream: each needs the results of those before.
    pub launches: Vec<Launch>,
    /// Items that were left out, by place; their slots are not written.
    pub refused: Vec<(usize, Error)>,
}

/// Packs a batch of images of any sizes, plans and slots. Planes that are to be made of `blocks`
/// first may be sources of the items.
///
/// # Panics
/// If the memory of some blocks cannot be as they say.
///
/// Cost: each axis's table is copied once, some 4 KiB and 2.3 microseconds for a 224x224 crop;
/// nothing depends on the number of pixels.
///
/// ```
/// use forebay_core::recipe::whole;
/// use forebay_core::{Channels, DType, Layout, Orientation, Region, Size, Write};
/// use forebay_cuda::pack::{Plane, RenderItem, Source, pack};
///
/// let size = Size { width: 4, height: 2 };
/// let (channels, layout) = (Channels::Rgb, Layout::ChannelsLast);
/// let write = Write { channels, dtype: DType::UInt8, layout, scale: false, normalize: None };
/// let plan = whole(size, Orientation::default(), write);
/// let plane = Plane { address: 0x1000, pitch: 12, held: Region::whole(size) };
/// let item = RenderItem { source: Source::Rgb(plane), plan: &plan, slot: 0x2000, slot_bytes: 24 };
/// let packed = pack(&[item], &[]);
/// assert!(packed.refused.is_empty());
/// assert_eq!((packed.launches.len(), packed.scratch_bytes), (1, 0));
/// ```
pub fn pack(items: &[RenderItem<'_>], blocks: &[Blocks]) -> Packed {
    let mut batch = Batch::new(items);
    batch.inverse_dct(blocks);
    let mut refused = Vec::new();
    for (place, item) in items.iter().enumerate() {
        match check::item(item) {
            Ok(()) => batch.add(item),
            Err(error) => refused.push((place, error)),
        }
    }
    Packed { refused, ..batch.finish() }
}

/// Bytes on the device that an image takes until it is rendered: its pixels, as 8-bit RGB, and
/// scratch. Tables are not counted.
pub fn footprint(plan: &ImagePlan) -> u64 {
    let mut scratch = Scratch::new(0, 0);
    areas::Areas::new(plan, &mut scratch);
    scratch.bytes() + 3 * plan.region.size().pixels()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_included_header_is_there() {
        let names: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        for (name, text) in SOURCES {
            for line in text.lines() {
                let included =
                    line.strip_prefix("#include \"").and_then(|rest| rest.strip_suffix('"'));
                assert!(included.is_none_or(|header| names.contains(&header)), "{name}: {line}");
                assert!(!line.starts_with("#include <"), "{name}: {line}");
            }
        }
    }

    #[test]
    fn every_kernel_is_defined() {
        for kernel in Kernel::ALL {
            let start = format!("{}(const fb_u8*", kernel.name());
            assert!(SOURCES.iter().any(|(_, text)| text.contains(&start)), "{start}");
        }
        assert!(SOURCES.iter().any(|(_, text)| text.contains("fb_mix(const fb_mixing mix)")));
    }
}
