//! What the Huffman kernels read: `cpp/kernels/scan.h`, field by field.

use super::header::{MOST_BLOCKS, TABLES};
use std::mem::offset_of;
use zerocopy::{Immutable, IntoBytes};

/// Bits by which codes are looked up.
pub(super) const LOOK: u32 = 10;
/// Bytes of a `fb_table`.
pub(super) const TABLE_BYTES: u64 = (4 << LOOK) + 2 * 17 * 4;
/// What a chunk was seen to be, at most.
pub(super) const SEEN_OF: u64 = 3;
/// Bytes of a `fb_chunk`.
pub(super) const CHUNK_BYTES: u64 = 32;

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Codes {
    pub(super) counts: [u8; 16],
    pub(super) symbols: [u8; 256],
}

#[derive(Debug, Clone, Copy, Default, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Block {
    pub(super) first: u32,
    pub(super) per_column: u32,
    pub(super) per_row: u32,
    pub(super) component: u8,
    pub(super) dc: u8,
    pub(super) ac: u8,
    pub(super) reserved: u8,
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Scan {
    pub(super) data: u64,
    pub(super) chunks: u64,
    pub(super) tables: u64,
    pub(super) status: u64,
    pub(super) coefficients: u64,
    pub(super) bytes: u32,
    pub(super) skip: u32,
    pub(super) chunk_bytes: u32,
    pub(super) chunk_count: u32,
    pub(super) mcus_across: u32,
    pub(super) mcu_blocks: u32,
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) first_column: u32,
    pub(super) columns: u32,
    pub(super) first_row: u32,
    pub(super) rows: u32,
    pub(super) are_pairs: u32,
    pub(super) reserved: u32,
    pub(super) blocks: [Block; MOST_BLOCKS],
    pub(super) codes: [Codes; TABLES],
}

const _: () = {
    assert!(size_of::<Codes>() == 272 && size_of::<Block>() == 16 && size_of::<Scan>() == 1344);
    assert!(offset_of!(Scan, coefficients) == 32 && offset_of!(Scan, blocks) == 96);
    assert!(offset_of!(Scan, codes) == 256 && TABLE_BYTES == 4232);
};
