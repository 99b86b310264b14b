// One chunk of a JPEG's entropy-coded data: what is in it, and where it ends.
//
// A state is (bits by which the chunk before has overshot its end, zigzag place, block of the MCU).
#ifndef FOREBAY_KERNELS_CHUNK_H
#define FOREBAY_KERNELS_CHUNK_H

#include "bits.h"
#include "codes.h"

// Natural places, by zigzag places.
FB_TABLE fb_u8 kFbNatural[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// Sums of the differences of first coefficients, by component; they wrap.
struct FbSums {
  fb_u32 sums[3] = {0, 0, 0};

  FB_DEVICE fb_u32 add(fb_u32 component, fb_i32 difference) {
    fb_u32 sum = 0;
    FB_UNROLL
    for (fb_u32 i = 0; i < 3; i++) {
      sums[i] += component == i ? static_cast<fb_u32>(difference) : 0;
      sum = component == i ? sums[i] : sum;
    }
    return sum;
  }
};

// Sees what is in a chunk, and remembers nothing.
struct FbPass {
  static constexpr bool kStrides = true;

  // A code of the block, by which k becomes `next`.
  FB_DEVICE void code(FbBlock, fb_u32, fb_u32, fb_u32, fb_i32) {}
  FB_DEVICE void flawed() {}
  // A block is at its end, and the MCU's block `next` follows. False: that was enough.
  FB_DEVICE bool finish(fb_u32) { return true; }
};

// Counts what is in a chunk.
struct FbCount {
  static constexpr bool kStrides = true;
  fb_u32 finished = 0;
  fb_u32 flaw = kFbNone;
  FbSums dc;

  FB_DEVICE void code(FbBlock block, fb_u32 k, fb_u32, fb_u32, fb_i32 value) {
    dc.add(k == 0 ? block.component() : kFbNone, value);
  }
  FB_DEVICE void flawed() { flaw = flaw == kFbNone ? finished : flaw; }
  FB_DEVICE bool finish(fb_u32) {
    finished++;
    return true;
  }
};

// Writes coefficients.
struct FbWrite {
  static constexpr bool kStrides = false;
  const fb_scan& scan;
  fb_i16* coefficients;
  fb_i16* into;  // nullptr: not wanted
  fb_u32 left;   // blocks to the end of those that are wanted
  fb_u32 column;
  fb_u32 row;  // of the MCU
  FbSums dc;

  FB_DEVICE FbWrite(const fb_scan& of, fb_u8* scratch, const fb_chunk& chunk)
      : scan(of),
        coefficients(reinterpret_cast<fb_i16*>(scratch + of.coefficients)),
        left(of.end - chunk.finished),
        column(chunk.finished / of.mcu_blocks % of.mcus_across),
        row(chunk.finished / of.mcu_blocks / of.mcus_across),
        dc{{chunk.dc[0], chunk.dc[1], chunk.dc[2]}} {
    find(chunk.finished % of.mcu_blocks);
  }

  FB_DEVICE void code(FbBlock block, fb_u32 k, fb_u32 next, fb_u32 size, fb_i32 value) {
    const fb_u32 sum = dc.add(k == 0 ? block.component() : kFbNone, value);
    if (into != nullptr && next <= 64 && (k == 0 || size > 0)) {
      into[kFbNatural[next - 1]] = static_cast<fb_i16>(k == 0 ? static_cast<fb_i32>(sum) : value);
    }
  }
  FB_DEVICE void flawed() {}
  FB_DEVICE bool finish(fb_u32 next) {
    if (next == 0) {
      column = column + 1 == scan.mcus_across ? 0 : column + 1;
      row += column == 0 ? 1 : 0;
    }
    find(next);
    left--;
    return left > 0;
  }

 private:
  FB_DEVICE void find(fb_u32 block) {
    const fb_scan_block& of = scan.blocks[block];
    // What lies before wraps around to beyond.
    const bool is_wanted =
        column - scan.first_column < scan.columns && row - scan.first_row < scan.rows;
    const fb_u32 at = of.first + column * of.per_column + row * of.per_row;
    into = is_wanted ? coefficients + at : nullptr;
  }
};

// Decodes chunk `index` from the state `entry`; returns the state at its end. Codes that begin in
// the chunk reach beyond it by `slack` bits, if that is known: then it ends there.
template <class Sink>
FB_DEVICE fb_u32 fb_decode_chunk(const fb_scan& scan, const FbScanTables& tables, fb_u32 index,
                                 fb_u32 entry, fb_u32 slack, Sink& sink) {
  if (entry == kFbNone) {
    return kFbNone;
  }
  const FbSharedWords entries(tables.entries);
  const FbSharedWords blocks(tables.blocks);
  FbBits in(scan, index, slack);
  in.drop(entry & 0xff);
  fb_u32 k = entry >> 8 & 0xff;
  FbBlock block = {blocks[entry >> 16]};
  FbBlock following = {blocks[block.next()]};
  fb_u32 table = k == 0 ? block.dc() : block.ac();
  for (;;) {
    in.fill();
    if (in.is_through()) {
      break;
    }
    FbEntry code = {entries[table | in.top() >> (32 - kFbLook)]};
    if (code.code == 0) {
      code = tables.find_long(scan, table >> kFbLook, in.top());
      if (code.code == 0) {
        sink.flawed();
        in.drop(1);
        continue;
      }
    }
    // Not past the last place, where another block's codes begin.
    const fb_u32 far = k + code.stride_advance();
    const bool strides = Sink::kStrides && (far & 64) == 0;
    const fb_u32 next = strides ? far : k + code.advance();
    const fb_i32 value = fb_value(in.top(), code.length(), code.size());
    sink.code(block, k, next, code.size(), value);
    in.drop(strides ? code.stride_length() : code.length());
    k = next;
    table = block.ac();
    if (k >= 64) {
      if (k > 64 && k < kFbEndOfBlock) {
        sink.flawed();
      }
      if (in.is_past_the_end()) {
        break;
      }
      k = 0;
      block = following;
      following = {blocks[block.next()]};
      table = block.dc();
      if (!sink.finish(block.number())) {
        return kFbNone;
      }
    }
  }
  const fb_u32 overshoot = in.overshoot();
  return overshoot == kFbNone ? kFbNone : overshoot | k << 8 | block.number() << 16;
}

// Counts what is in chunk `index` from the state `entry` on, and notes it down as what it was seen
// to be at `place`.
FB_DEVICE fb_u32 fb_count_chunk(const fb_scan& scan, const FbScanTables& tables, fb_u8* scratch,
                                fb_u32 index, fb_u32 place, fb_u32 entry) {
  FbCount count;
  const fb_u32 exit = fb_decode_chunk(scan, tables, index, entry, 0, count);
  fb_chunk* chunks = reinterpret_cast<fb_chunk*>(scratch + scan.chunks);
  const fb_u32(&dc)[3] = count.dc.sums;
  chunks[place * scan.chunk_count + index] = {
      entry, exit, count.finished, count.flaw, {dc[0], dc[1], dc[2]}, 0};
  return exit;
}

#endif
