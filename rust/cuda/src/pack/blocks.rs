//! Blocks of coefficients as jobs of the inverse DCT.

use super::batch::MAX_JOBS;
use super::blob::Blob;
use super::descriptor::{self, BLOCK};
use super::{Component, Kernel, Launch, Plane, Source};
use forebay_core::{Region, Sampling, Size, ports};

/// Planes begin at multiples of this.
const PLANE_ALIGN: usize = 256;
/// And their rows.
const ROW_ALIGN: u32 = 64;

/// Blocks of a JPEG's component in memory that the kernels can read, and the plane that they become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blocks {
    /// Address of the first block, a multiple of 8; rows of blocks follow each other. A block is 64
    /// int16 in natural order, not dequantised.
    pub coefficients: u64,
    /// Address of the plane, a multiple of 8, with `8 * down` rows.
    pub samples: u64,
    /// Number of blocks, across.
    pub across: u32,
    /// Down.
    pub down: u32,
    /// Bytes from row to row of the plane: a multiple of 8, at least `8 * across`.
    pub pitch: u32,
    /// What coefficients are multiplied by, in natural order.
    pub quantisation: [u16; 64],
}

/// An image whose coefficients are on the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Laid {
    /// Its planes, as soon as they are made.
    pub source: Source,
    /// What they are made of.
    pub blocks: [Blocks; 3],
    /// Bytes that the planes take.
    pub bytes: usize,
}

/// Lays out the planes of an image of `size`, from the address `samples` on, whose coefficients lie
/// at the address `coefficients`.
pub fn lay_out(
    size: Size,
    components: &[ports::Blocks; 3],
    coefficients: u64,
    samples: u64,
) -> Laid {
    let mut bytes = 0;
    let mut lay = |of: &ports::Blocks| {
        let pitch = (8 * of.across).next_multiple_of(ROW_ALIGN);
        let address = samples + bytes as u64;
        let len = pitch as usize * 8 * of.down as usize;
        bytes = (bytes + len).next_multiple_of(PLANE_ALIGN);
        let plane = Plane { address, pitch, held: held(of, size) };
        let Sampling { across, down } = of.sampling;
        let blocks = Blocks {
            coefficients: coefficients + of.offset as u64,
            samples: address,
            across: of.across,
            down: of.down,
            pitch,
            quantisation: of.quantisation,
        };
        (Component { plane, expand: (across, down) }, blocks)
    };
    let [(y, of_y), (cb, of_cb), (cr, of_cr)] = [0, 1, 2].map(|place| lay(&components[place]));
    let source = Source::Ycbcr { size, components: [y, cb, cr] };
    Laid { source, blocks: [of_y, of_cb, of_cr], bytes }
}

/// Samples of the component: those behind its edges are padding.
fn held(of: &ports::Blocks, image: Size) -> Region {
    let all = of.sampling.component(image);
    let span = |first: u32, blocks: u32, end: u32| {
        let first = 8 * first;
        (first, (8 * blocks).min(end.saturating_sub(first)))
    };
    let (x, width) = span(of.x, of.across, all.width);
    let (y, height) = span(of.y, of.down, all.height);
    Region { x, y, width, height }
}

impl Blocks {
    /// Whether the kernel stays inside what is promised.
    fn is_sound(&self) -> bool {
        let blocks = u64::from(self.across) * u64::from(self.down);
        let aligned = [self.coefficients, self.samples, self.pitch.into()];
        blocks > 0
            && i32::try_from(blocks).is_ok()
            && u64::from(self.pitch) >= 8 * u64::from(self.across)
            && aligned.iter().all(|number| *number != 0 && number.is_multiple_of(8))
    }
}

/// Appends the jobs, and the launches that run them.
///
/// # Panics
/// If the memory of some blocks cannot be as they say.
pub(super) fn launch(all: &[Blocks], blob: &mut Blob, launches: &mut Vec<Launch>) {
    for chunk in all.chunks(MAX_JOBS) {
        assert!(chunk.iter().all(Blocks::is_sound), "blocks are not where they are said to be");
        let jobs: Vec<descriptor::Blocks> = chunk.iter().map(describe).collect();
        let most = chunk.iter().map(|blocks| blocks.across * blocks.down).max().unwrap_or(0);
        launches.push(Launch {
            kernel: Kernel::InverseDct,
            jobs_offset: blob.append(&jobs),
            jobs: u32::try_from(jobs.len()).expect("at most MAX_JOBS"),
            tiles: most.div_ceil(BLOCK),
        });
    }
}

fn describe(blocks: &Blocks) -> descriptor::Blocks {
    let Blocks { coefficients, samples, across, down, pitch, quantisation } = *blocks;
    descriptor::Blocks { coefficients, samples, across, down, pitch, reserved: 0, quantisation }
}
