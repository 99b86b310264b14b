//! What the Huffman kernels read: `cpp/kernels/scan.h`, field by field.

use super::header::{MOST_BLOCKS, TABLES};
use std::mem::offset_of;
use zerocopy::{Immutable, IntoBytes};

/// Lanes of a warp of 32 that decode.
pub(super) const LANES: u32 = 8;
/// Bits by which codes are looked up.
pub(super) const LOOK: u32 = 10;
/// Bytes of a `fb_table`.
pub(super) const TABLE_BYTES: u64 = (4 << LOOK) + 2 * 17 * 4;
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
    pub(super) component: u8,
    pub(super) x: u8,
    pub(super) y: u8,
    pub(super) dc: u8,
    pub(super) ac: u8,
    pub(super) reserved: [u8; 3],
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Component {
    pub(super) coefficients: u64,
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) across: u32,
    pub(super) down: u32,
    pub(super) mcu_across: u32,
    pub(super) mcu_down: u32,
}

#[derive(Debug, Clone, Copy, IntoBytes, Immutable)]
#[repr(C)]
pub(super) struct Scan {
    pub(super) data: u64,
    pub(super) chunks: u64,
    pub(super) tables: u64,
    pub(super) status: u64,
    pub(super) bytes: u32,
    pub(super) skip: u32,
    pub(super) chunk_bytes: u32,
    pub(super) chunk_count: u32,
    pub(super) mcus_across: u32,
    pub(super) mcu_blocks: u32,
    pub(super) first: u32,
    pub(super) end: u32,
    pub(super) components: [Component; 3],
    pub(super) blocks: [Block; MOST_BLOCKS],
    pub(super) codes: [Codes; TABLES],
}

const _: () = {
    assert!(size_of::<Codes>() == 272 && size_of::<Block>() == 8);
    assert!(size_of::<Component>() == 32 && size_of::<Scan>() == 1328);
    assert!(offset_of!(Scan, components) == 64 && offset_of!(Scan, blocks) == 160);
    assert!(offset_of!(Scan, codes) == 240 && TABLE_BYTES == 4232);
};
