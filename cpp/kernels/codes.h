// A JPEG's Huffman codes by look-up, and which of its tables a block takes.
#ifndef FOREBAY_KERNELS_CODES_H
#define FOREBAY_KERNELS_CODES_H

#include "scan.h"

// What the end of a block adds to k.
constexpr fb_u32 kFbEndOfBlock = 128;

// What the bits begin with. The first code: bits 8-15 how far k advances, 16-20 the code's length
// with its value's bits, 25-28 these alone. Then a stride of all codes of the block that are
// complete: bits 0-7 how far k advances, 64 for no stride; 21-24 their length with all values.
struct FbEntry {
  fb_u32 code;  // 0: a longer code, or none

  FB_DEVICE fb_u32 stride_advance() const { return code & 255; }
  FB_DEVICE fb_u32 advance() const { return code >> 8 & 255; }
  FB_DEVICE fb_u32 length() const { return code >> 16 & 31; }
  FB_DEVICE fb_u32 stride_length() const { return code >> 21 & 15; }
  FB_DEVICE fb_u32 size() const { return code >> 25; }
};

constexpr fb_u32 kFbNoStride = 64;

FB_DEVICE FbEntry fb_entry(fb_u32 length, fb_u32 symbol, bool is_dc) {
  const fb_u32 size = is_dc ? symbol : symbol & 15;
  const fb_u32 run = is_dc ? 0 : symbol >> 4;
  const bool is_end = !is_dc && size == 0 && run != 15;
  const fb_u32 advance = is_end ? kFbEndOfBlock : run + 1;
  return {size << 25 | (length + size) << 16 | advance << 8 | kFbNoStride};
}

// The value in the last `size` bits of the first `length` ones (F.2.2.1 of the JPEG standard).
FB_DEVICE fb_i32 fb_value(fb_u32 top, fb_u32 length, fb_u32 size) {
  const fb_i32 most = (1 << size) - 1;
  const fb_i32 value = static_cast<fb_i32>(top >> (32 - length)) & most;
  return 2 * value > most ? value : value - most;
}

// A block of the MCU: bits 0-1 its component, 2-5 the number of the next one, 6-9 its own, 10-11
// its DC table, 12-13 its AC table.
struct FbBlock {
  fb_u32 kind;

  FB_DEVICE fb_u32 component() const { return kind & 3; }
  FB_DEVICE fb_u32 next() const { return kind >> 2 & 15; }
  FB_DEVICE fb_u32 number() const { return kind >> 6 & 15; }
  // Where its table's entries begin.
  FB_DEVICE fb_u32 dc() const { return kind & 3 << kFbLook; }
  FB_DEVICE fb_u32 ac() const { return kind >> 2 & 3 << kFbLook; }
};

FB_DEVICE FbBlock fb_block_of(const fb_scan& scan, fb_u32 number) {
  const fb_scan_block& of = scan.blocks[number];
  const fb_u32 next = number + 1 == scan.mcu_blocks ? 0 : number + 1;
  return {of.component | next << 2 | number << 6 | of.dc << kFbLook | of.ac << (kFbLook + 2)};
}

// A file's tables, and what its blocks are, for all threads of a block.
struct FbScanTables {
  fb_u32 entries[kFbTables << kFbLook];
  fb_u32 blocks[kFbMostBlocks];            // see FbBlock
  fb_u32 limits[kFbTables][16 - kFbLook];  // of lengths from kFbLook + 1 on, see fb_table
  fb_i32 offsets[kFbTables][16 - kFbLook];

  // The thread's share.
  FB_DEVICE void load(const fb_scan& scan, const fb_u8* scratch) {
    const fb_table* tables = reinterpret_cast<const fb_table*>(scratch + scan.tables);
    for (fb_u32 i = threadIdx.x; i < kFbTables << kFbLook; i += kFbBlock) {
      entries[i] = tables[i >> kFbLook].entries[i & ((1 << kFbLook) - 1)];
    }
    if (threadIdx.x < kFbTables * (16 - kFbLook)) {
      const fb_table& table = tables[threadIdx.x % kFbTables];
      const fb_u32 i = threadIdx.x / kFbTables;
      limits[threadIdx.x % kFbTables][i] = table.limits[kFbLook + 1 + i];
      offsets[threadIdx.x % kFbTables][i] = table.offsets[kFbLook + 1 + i];
    }
    if (threadIdx.x < scan.mcu_blocks) {
      blocks[threadIdx.x] = fb_block_of(scan, threadIdx.x).kind;
    }
  }

  // The code on top that is longer than the look-up; 0 if there is none.
  FB_DEVICE FbEntry find_long(const fb_scan& scan, fb_u32 table, fb_u32 top) const {
    const fb_u32 code = top >> 16;
    fb_u32 longer = 0;
    FB_UNROLL
    for (fb_u32 i = 0; i < 16 - kFbLook; i++) {
      longer += code >= limits[table][i] ? 1 : 0;
    }
    if (longer == 16 - kFbLook) {
      return {0};
    }
    const fb_u32 length = kFbLook + 1 + longer;
    const fb_i32 place = static_cast<fb_i32>(code >> (16 - length)) + offsets[table][longer];
    return fb_entry(length, scan.codes[table].symbols[place], table < kFbTables / 2);
  }
};

// The code that 16 bits begin with, if it has at most kFbLook; 0 otherwise.
FB_DEVICE FbEntry fb_find(const fb_codes& codes, fb_u32 top, bool is_dc) {
  fb_u32 code = 0;
  fb_u32 place = 0;
  for (fb_u32 length = 1; length <= kFbLook; length++) {
    const fb_u32 count = codes.counts[length - 1];
    const fb_u32 bits = top >> (16 - length);
    if (bits < code + count) {
      return fb_entry(length, codes.symbols[place + bits - code], is_dc);
    }
    code = (code + count) << 1;
    place += count;
  }
  return {0};
}

// Adds the stride to the entry for `top`; `codes` are those that follow.
FB_DEVICE fb_u32 fb_with_stride(FbEntry entry, const fb_codes& codes, fb_u32 top) {
  FbEntry next = entry;
  fb_u32 length = 0;
  fb_u32 advance = 0;
  while (next.code != 0 && length + next.length() <= kFbLook &&
         advance + next.advance() % kFbEndOfBlock < 64) {
    length += next.length();
    advance += next.advance();
    if (advance >= kFbEndOfBlock) {
      break;
    }
    next = fb_find(codes, top << length & 0xffff, false);
  }
  return length == 0 ? entry.code : (entry.code - kFbNoStride) | length << 21 | advance;
}

#endif
