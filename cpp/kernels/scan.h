// What the Huffman kernels read and leave: the only scan of a baseline JPEG of three components.
//
// fb_scan is mirrored field by field in rust/cuda/src/pack/scan/descriptor.rs; both sides assert
// sizes and offsets. Offsets are as in render.h.
#ifndef FOREBAY_KERNELS_SCAN_H
#define FOREBAY_KERNELS_SCAN_H

#include "render.h"

// Bits by which codes are looked up.
constexpr fb_u32 kFbLook = 10;
constexpr fb_u32 kFbMostBlocks = 10;  // of an MCU
// DC tables, then AC tables.
constexpr fb_u32 kFbTables = 4;

// A Huffman table as DHT has it: how many codes there are of each length, and their symbols.
struct fb_codes {
  fb_u8 counts[16];
  fb_u8 symbols[256];
};

// A block of an MCU. Where its coefficients lie is counted in coefficients, from fb_scan's on, and
// wraps: first + column * per_column + row * per_row, of the MCU.
struct fb_scan_block {
  fb_u32 first;
  fb_u32 per_column;
  fb_u32 per_row;
  fb_u8 component;
  fb_u8 dc;  // its tables
  fb_u8 ac;
  fb_u8 reserved;
};

// What a chunk was seen to be, at most: with two, photos take up to 34 rounds, with more no fewer.
constexpr fb_u32 kFbSeenOf = 3;

struct fb_scan {
  fb_u64 data;          // address of the last multiple of 4 before the scan's data
  fb_u64 chunks;        // scratch offset of fb_chunk[kFbSeenOf][chunk_count]
  fb_u64 tables;        // scratch offset of fb_table[kFbTables]
  fb_u64 status;        // scratch offset of fb_u32: 1 once all that is wanted is known to be good
  fb_u64 coefficients;  // scratch offset of the wanted blocks, fb_i16[64] each, zeros at first
  fb_u32 bytes;         // from `data` to the end of the file
  fb_u32 skip;          // and to the scan's data
  fb_u32 chunk_bytes;   // that one thread decodes, a multiple of 4
  fb_u32 chunk_count;
  fb_u32 mcus_across;
  fb_u32 mcu_blocks;
  fb_u32 first;         // the wanted blocks are among those from here
  fb_u32 end;           // to here, counted as the scan has them
  fb_u32 first_column;  // the wanted MCUs
  fb_u32 columns;
  fb_u32 first_row;
  fb_u32 rows;
  fb_u32 are_pairs;  // 1: blocks have the DC and the AC table of the same number
  fb_u32 reserved;
  fb_scan_block blocks[kFbMostBlocks];
  fb_codes codes[kFbTables];
};

// A table made ready: by the first kFbLook bits, and for longer codes by the first 16.
struct fb_table {
  fb_u32 entries[1 << kFbLook];  // see FbEntry; 0: a longer code, or none
  fb_u32 limits[17];             // by length: codes of 16 bits below it have at most this length
  fb_i32 offsets[17];            // by length: place of a code's symbol, less the code
};

// What is known of a chunk: at first what counts, and while it settles what was found for other
// entries. fb_huffman_place turns counts into sums over all chunks before.
struct fb_chunk {
  fb_u32 entry;     // where its first code begins: overshoot | k << 8 | block << 16
  fb_u32 exit;      // where the next chunk's does
  fb_u32 finished;  // blocks whose last code is in it
  fb_u32 flaw;      // blocks that were finished before the first code that cannot be; kFbNone
  fb_u32 dc[3];     // sums of the differences
  fb_u32 reserved;
};

constexpr fb_u32 kFbNone = ~0u;
constexpr fb_u32 kFbUnknown = ~1u;  // an entry, as long as there is only a guess

static_assert(sizeof(fb_codes) == 272 && sizeof(fb_scan_block) == 16, "mirrored");
static_assert(sizeof(fb_scan) == 1344, "mirrored");
static_assert(sizeof(fb_table) == 4232 && sizeof(fb_chunk) == 32, "mirrored");

#endif
