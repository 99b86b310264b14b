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
use descriptor::{CHUNK_BYTES, LOOK, SEEN_OF, TABLE_BYTES};
use forebay_core::{Region, Size, ports};
use header::TABLES;
use std::ops::RangeInclusive;

/// How often blocks of threads settle what the one before has left, after a guess.
const ROUNDS: usize = 4;
/// Blocks of a chunk on average. With fewer, threads fall into step after more rounds; with more,
/// each takes longer.
const CHUNK_BLOCKS: usize = 16;
/// Bytes of a chunk.
const CHUNK: RangeInclusive<usize> = 64..=1024;
/// Coefficients of a block.
const BLOCK: u32 = 64;
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
            parts.chunks = take(SEEN_OF * item.chunks() as u64 * CHUNK_BYTES);
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

    /// The MCUs that are wanted.
    fn wanted(&self) -> Region {
        let (of, blocks) = (&self.scan.components[0], &self.components[0]);
        Region {
            x: blocks.x / of.across,
            y: blocks.y / of.down,
            width: blocks.across / of.across,
            height: blocks.down / of.down,
        }
    }

    /// The blocks of an MCU, and how many there are.
    fn blocks(&self) -> ([descriptor::Block; header::MOST_BLOCKS], u32) {
        let wanted = self.wanted();
        let mut blocks = [descriptor::Block::default(); header::MOST_BLOCKS];
        let mut count = 0;
        for (place, of) in self.scan.components.iter().enumerate() {
            let held = &self.components[place];
            let (per_column, per_row) = (of.across * BLOCK, of.down * held.across * BLOCK);
            let origin = number_of(held.offset / size_of::<i16>());
            let origin = origin
                .wrapping_sub(wanted.x.wrapping_mul(per_column))
                .wrapping_sub(wanted.y.wrapping_mul(per_row));
            for (y, x) in (0..of.down).flat_map(|y| (0..of.across).map(move |x| (y, x))) {
                blocks[count] = descriptor::Block {
                    first: origin.wrapping_add((y * held.across + x) * BLOCK),
                    per_column,
                    per_row,
                    component: u8::try_from(place).expect("three components"),
                    dc: of.dc,
                    ac: of.ac,
                    reserved: 0,
                };
                count += 1;
            }
        }
        (blocks, number_of(count))
    }

    fn describe(&self, number: usize, parts: &Parts) -> descriptor::Scan {
        let wanted = self.wanted();
        let (blocks, mcu_blocks) = self.blocks();
        let mcu = |x: u32, y: u32| (y * self.scan.mcus_across() + x) * mcu_blocks;
        let last = mcu(wanted.x + wanted.width - 1, wanted.y + wanted.height - 1);
        descriptor::Scan {
            data: self.file + self.before() as u64,
            chunks: parts.chunks,
            tables: parts.tables,
            status: (number * size_of::<u32>()) as u64,
            coefficients: parts.coefficients,
            bytes: number_of(self.data()),
            skip: number_of(self.scan.data() - self.before()),
            chunk_bytes: number_of(self.chunk()),
            chunk_count: number_of(self.chunks()),
            mcus_across: self.scan.mcus_across(),
            mcu_blocks,
            first: mcu(wanted.x, wanted.y),
            end: last + mcu_blocks,
            first_column: wanted.x,
            columns: wanted.width,
            first_row: wanted.y,
            rows: wanted.height,
            are_pairs: self.scan.components.iter().all(|of| of.dc + 2 == of.ac).into(),
            reserved: 0,
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

fn number_of(count: usize) -> u32 {
    u32::try_from(count).expect("coefficients take 4 GiB at most")
}
