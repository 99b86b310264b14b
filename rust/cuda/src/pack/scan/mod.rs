//! Files of a batch as bytes that the Huffman kernels read, and the launches that make planes of
//! them.
//!
//! `header` reads files, `descriptor` is `cpp/kernels/scan.h`.
//!
//! **Invariants**
//! - PIX-1: planes are made of the coefficients that libjpeg reads. Where that is not sure, the
//!   image's status is 0, and its planes hold anything.
//! - Whatever a file holds, kernels read nothing outside files and scratch, write nothing outside
//!   scratch and planes, and end.

mod descriptor;
mod header;

pub use header::Scan;

use super::blob::Blob;
use super::{Kernel, Launch, Packed, blocks};
use descriptor::{CHUNK_BYTES, LANES, LOOK, TABLE_BYTES};
use forebay_core::{Size, ports};
use header::TABLES;
use std::ops::RangeInclusive;

/// How often chunks are decoded again after a guess. Of 391 photos, 306 need it once and none more
/// than 8 times; noise at the best quality needs up to 17.
const ROUNDS: usize = 8;
/// Blocks of a chunk on average: with fewer, threads fall into step too late.
const CHUNK_BLOCKS: usize = 48;
/// Bytes of a chunk.
const CHUNK: RangeInclusive<usize> = 256..=8192;
/// Threads of a warp.
const WARP: u32 = 32;
/// Bytes that are read at once.
const WORD: usize = 4;
/// Parts of the scratch begin at multiples of this.
const ALIGN: u64 = 256;

/// An image whose codes the device reads.
#[derive(Debug)]
pub struct ScanItem<'a> {
    /// Its header.
    pub scan: &'a Scan,
    /// Size of the whole image.
    pub size: Size,
    /// Address of the file, a multiple of 4; whole words of it can be read.
    pub file: u64,
    /// Bytes of the file, at most [`MAX_FILE`].
    pub file_bytes: usize,
    /// The blocks that are wanted: [`Scan::window`].
    pub components: [ports::Blocks; 3],
    /// Bytes of their coefficients.
    pub coefficients: usize,
}

/// The largest file.
pub const MAX_FILE: usize = 1 << 24;

/// Scratch memory of a batch of scans. It begins with a status for each, an u32: 1 if the planes
/// hold its pixels.
#[derive(Debug, Default)]
pub struct ScanScratch {
    /// Bytes in all.
    pub bytes: u64,
    /// Bytes at its beginning that must be zero before the first launch.
    pub cleared: u64,
    parts: Vec<Parts>,
}

/// Offsets of an image's.
#[derive(Debug, Clone, Copy, Default)]
struct Parts {
    coefficients: u64,
    tables: u64,
    chunks: u64,
}

impl ScanScratch {
    /// Lays out the scratch of some images.
    pub fn new(items: &[ScanItem<'_>]) -> Self {
        let mut bytes = (items.len() * size_of::<u32>()) as u64;
        let mut take = |wanted: u64| {
            let offset = bytes.next_multiple_of(ALIGN);
            bytes = offset + wanted;
            offset
        };
        let mut parts: Vec<Parts> = items
            .iter()
            .map(|item| Parts { coefficients: take(item.coefficients as u64), ..Parts::default() })
            .collect();
        let cleared = take(0);
        for (parts, item) in parts.iter_mut().zip(items) {
            parts.tables = take(TABLES as u64 * TABLE_BYTES);
            parts.chunks = take(item.chunks() as u64 * CHUNK_BYTES);
        }
        Self { bytes, cleared, parts }
    }
}

impl ScanItem<'_> {
    /// Bytes of the file before the last multiple of 4 before its data.
    fn before(&self) -> usize {
        self.scan.data() / WORD * WORD
    }

    /// Bytes from there on.
    fn data(&self) -> usize {
        self.file_bytes - self.before()
    }

    /// Bytes of a chunk.
    fn chunk(&self) -> usize {
        let blocks = self.scan.blocks() as usize;
        let bytes = CHUNK_BLOCKS * self.data() / blocks;
        bytes.next_multiple_of(WORD).clamp(*CHUNK.start(), *CHUNK.end())
    }

    fn chunks(&self) -> usize {
        self.data().div_ceil(self.chunk())
    }

    /// Numbers of the first wanted block and of the one behind the last, as the scan has them.
    fn wanted(&self, mcu_blocks: u32) -> (u32, u32) {
        let (of, blocks) = (&self.scan.components[0], &self.components[0]);
        let mcu =
            |x: u32, y: u32| (y / of.down * self.scan.mcus_across() + x / of.across) * mcu_blocks;
        let last = mcu(blocks.x + blocks.across - 1, blocks.y + blocks.down - 1);
        (mcu(blocks.x, blocks.y), last + mcu_blocks)
    }

    fn describe(&self, number: usize, parts: &Parts) -> descriptor::Scan {
        let mut blocks = [descriptor::Block::default(); header::MOST_BLOCKS];
        let mut mcu_blocks = 0;
        for (component, of) in self.scan.components.iter().enumerate() {
            for (y, x) in (0..of.down).flat_map(|y| (0..of.across).map(move |x| (y, x))) {
                blocks[mcu_blocks] = descriptor::Block {
                    component: small(component),
                    x: small(x as usize),
                    y: small(y as usize),
                    dc: of.dc,
                    ac: of.ac,
                    reserved: [0; 3],
                };
                mcu_blocks += 1;
            }
        }
        let mcu_blocks = number_of(mcu_blocks);
        let (first, end) = self.wanted(mcu_blocks);
        let component = |place: usize| {
            let (of, blocks) = (&self.scan.components[place], &self.components[place]);
            descriptor::Component {
                coefficients: parts.coefficients + blocks.offset as u64,
                x: blocks.x,
                y: blocks.y,
                across: blocks.across,
                down: blocks.down,
                mcu_across: of.across,
                mcu_down: of.down,
            }
        };
        descriptor::Scan {
            data: self.file + self.before() as u64,
            chunks: parts.chunks,
            tables: parts.tables,
            status: (number * size_of::<u32>()) as u64,
            bytes: number_of(self.data()),
            skip: number_of(self.scan.data() - self.before()),
            chunk_bytes: number_of(self.chunk()),
            chunk_count: number_of(self.chunks()),
            mcus_across: self.scan.mcus_across(),
            mcu_blocks,
            first,
            end,
            components: [component(0), component(1), component(2)],
            blocks,
            codes: self
                .scan
                .codes
                .map(|codes| descriptor::Codes { counts: codes.counts, symbols: codes.symbols }),
        }
    }
}

/// Packs scans, whose scratch lies at `scratch` and whose planes lie one behind the other from
/// `planes` on; also what each becomes.
///
/// # Panics
/// If a file is larger than [`MAX_FILE`] or not aligned, or the scratch is not that of the items.
pub fn pack_scans(
    items: &[ScanItem<'_>],
    layout: &ScanScratch,
    scratch: u64,
    mut planes: u64,
) -> (Packed, Vec<super::Source>) {
    assert_eq!(items.len(), layout.parts.len(), "the scratch of other items");
    assert!(items.iter().all(|item| item.file_bytes <= MAX_FILE), "a file is too large");
    let aligned = items.iter().all(|item| item.file.is_multiple_of(WORD as u64));
    assert!(aligned, "a file must begin at a multiple of 4");
    let mut blob = Blob::default();
    let scans: Vec<descriptor::Scan> = items
        .iter()
        .zip(&layout.parts)
        .enumerate()
        .map(|(number, (item, parts))| item.describe(number, parts))
        .collect();
    let jobs_offset = blob.append(&scans);
    let jobs = number_of(items.len());
    let launch = |kernel, threads: u32| Launch {
        kernel,
        jobs_offset,
        jobs,
        tiles: threads.div_ceil(super::BLOCK_THREADS),
    };
    let chunks = scans.iter().map(|scan| scan.chunk_count.max(1)).max().unwrap_or(1);
    let chunks = chunks.div_ceil(LANES) * WARP;
    let mut launches = vec![
        launch(Kernel::HuffmanTables, number_of(TABLES) << LOOK),
        launch(Kernel::HuffmanGuess, chunks),
    ];
    launches.extend([launch(Kernel::HuffmanSettle, chunks); ROUNDS]);
    launches.push(launch(Kernel::HuffmanPlace, 1));
    launches.push(launch(Kernel::HuffmanWrite, chunks));

    let mut all = Vec::with_capacity(3 * items.len());
    let mut sources = Vec::with_capacity(items.len());
    for (item, parts) in items.iter().zip(&layout.parts) {
        let coefficients = scratch + parts.coefficients;
        let laid = super::lay_out(item.size, &item.components, coefficients, planes);
        planes += laid.bytes as u64;
        all.extend(laid.blocks);
        sources.push(laid.source);
    }
    blocks::launch(&all, &mut blob, &mut launches);
    let packed = Packed {
        blob: blob.into_bytes(),
        scratch_bytes: layout.bytes,
        cleared_bytes: layout.cleared,
        launches,
        refused: Vec::new(),
    };
    (packed, sources)
}

fn small(number: usize) -> u8 {
    u8::try_from(number).expect("at most 10 blocks an MCU")
}

fn number_of(count: usize) -> u32 {
    u32::try_from(count).expect("files are at most 16 MiB")
}
