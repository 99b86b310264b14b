// Baseline JPEG's Huffman codes, many threads to an image.
//
// Codes can only be told apart from the first one on. But whoever starts somewhere falls into step
// with those who started before, mostly within some dozens of codes; so every chunk is decoded from
// a guess, then again from where the one before has ended, until nothing changes (Klein and
// Wiseman, "Parallel Huffman Decoding with Applications to JPEG Files", Computer Journal 46, 2003;
// Weissenberger and Schmidt, "Accelerating JPEG Decompression on GPUs", HiPC 2021). What has then
// been counted says which block each chunk begins with, and what the first coefficients before add
// up to; a last pass writes coefficients. An image that has not settled, that has a code which
// cannot be, a marker inside, or no end, is left to the CPU, whose verdict counts.
//
// A state is (bits by which the chunk before has overshot its end, zigzag place, block of the MCU).
#ifndef FOREBAY_KERNELS_HUFFMAN_H
#define FOREBAY_KERNELS_HUFFMAN_H

#include "bits.h"
#include "scan.h"

// Natural places, by zigzag places.
FB_TABLE fb_u8 kFbNatural[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

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

FB_DEVICE fb_u32 fb_count_chunk(const fb_scan& scan, const FbScanTables& tables, fb_u8* scratch,
                                fb_u32 index, fb_u32 entry) {
  FbCount count;
  const fb_u32 exit = fb_decode_chunk(scan, tables, index, entry, 0, count);
  fb_chunk& chunk = reinterpret_cast<fb_chunk*>(scratch + scan.chunks)[index];
  const fb_u32(&dc)[3] = count.dc.sums;
  chunk = {entry, exit, count.finished, count.flaw, {dc[0], dc[1], dc[2]}, 0};
  return exit;
}

FB_DEVICE const fb_scan& fb_scan_of_block(const fb_u8* blob, fb_u64 jobs) {
  return reinterpret_cast<const fb_scan*>(blob + jobs)[blockIdx.y];
}

FB_DEVICE fb_u32 fb_thread() { return blockIdx.x * kFbBlock + threadIdx.x; }

// Grids are (tiles of the largest, scans); `jobs` is the blob offset of the first fb_scan.

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

// Makes tables ready; one thread an entry.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_tables(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  const fb_u32 number = fb_thread() >> kFbLook;
  const fb_u32 index = fb_thread() & ((1 << kFbLook) - 1);
  const fb_codes& codes = scan.codes[number];
  fb_table& table = reinterpret_cast<fb_table*>(scratch + scan.tables)[number];
  const bool is_dc = number < kFbTables / 2;
  const fb_u32 top = index << (16 - kFbLook);
  const FbEntry entry = fb_find(codes, top, is_dc);
  const fb_codes& following = scan.codes[is_dc ? number + kFbTables / 2 : number];
  table.entries[index] =
      is_dc && scan.are_pairs == 0 ? entry.code : fb_with_stride(entry, following, top);
  if (index != 0) {
    return;
  }
  fb_u32 code = 0;
  fb_i32 place = 0;
  for (fb_u32 length = 1; length <= 16; length++) {
    table.offsets[length] = place - static_cast<fb_i32>(code);
    code += codes.counts[length - 1];
    place += codes.counts[length - 1];
    table.limits[length] = code << (16 - length);
    code <<= 1;
  }
}

// Decodes every chunk as if a block began with it, for where it ends; one thread a chunk, here and
// below.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_guess(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  FB_TOGETHER;
  FB_SHARED FbScanTables tables;
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  if (blockIdx.x * kFbBlock >= scan.chunk_count) {
    return;
  }
  FB_EACH_THREAD { tables.load(scan, scratch); }
  FB_SYNC;
  FB_EACH_THREAD {
    if (fb_thread() < scan.chunk_count) {
      FbPass pass;
      fb_chunk& chunk = reinterpret_cast<fb_chunk*>(scratch + scan.chunks)[fb_thread()];
      chunk.entry = kFbUnknown;
      chunk.exit = fb_decode_chunk(scan, tables, fb_thread(), 0, 0, pass);
    }
  }
}

// How often a launch of fb_huffman_settle decodes a chunk, at most: photos take up to 32 rounds.
constexpr fb_u32 kFbRounds = 64;
// A scan's status until fb_huffman_place, if that was not enough.
constexpr fb_u32 kFbGivenUp = 2;

// Decodes chunks again that began where the one before does not end any more, until all of the
// block's agree. A scan that takes a block too many rounds is given up. Whether the first one sees
// what another block is about to change makes no difference in the end.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_settle(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  FB_TOGETHER;
  FB_SHARED FbScanTables tables;
  FB_SHARED fb_u32 entries[kFbBlock];
  FB_SHARED fb_u32 exits[kFbBlock];
  FB_SHARED bool is_wrong[kFbBlock];
  FB_SHARED bool is_settled;
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  if (blockIdx.x * kFbBlock >= scan.chunk_count) {
    return;
  }
  volatile fb_u32* status = reinterpret_cast<fb_u32*>(scratch + scan.status);
  const volatile fb_chunk* chunks = reinterpret_cast<const fb_chunk*>(scratch + scan.chunks);
  FB_EACH_THREAD {
    // One thread looks: another block may change it meanwhile.
    if (threadIdx.x == 0) {
      is_settled = *status == kFbGivenUp;
    }
    const bool is_one = fb_thread() < scan.chunk_count;
    entries[threadIdx.x] = is_one ? chunks[fb_thread()].entry : kFbNone;
    exits[threadIdx.x] = is_one ? chunks[fb_thread()].exit : kFbNone;
  }
  FB_SYNC;
  if (is_settled) {
    return;
  }
  FB_SYNC;
  for (fb_u32 round = 0; round < kFbRounds; round++) {
    FB_EACH_THREAD {
      if (threadIdx.x == 0) {
        is_settled = true;
      }
    }
    FB_SYNC;
    FB_EACH_THREAD {
      const fb_u32 before = threadIdx.x > 0   ? exits[threadIdx.x - 1]
                            : blockIdx.x == 0 ? 0
                                              : chunks[fb_thread() - 1].exit;
      is_wrong[threadIdx.x] = fb_thread() < scan.chunk_count && before != entries[threadIdx.x];
      if (is_wrong[threadIdx.x]) {
        entries[threadIdx.x] = before;
        is_settled = false;
      }
    }
    FB_SYNC;
    if (is_settled) {
      return;
    }
    if (round == 0) {
      FB_EACH_THREAD { tables.load(scan, scratch); }
      FB_SYNC;
    }
    FB_EACH_THREAD {
      if (is_wrong[threadIdx.x]) {
        exits[threadIdx.x] =
            fb_count_chunk(scan, tables, scratch, fb_thread(), entries[threadIdx.x]);
      }
    }
    FB_SYNC;
  }
  FB_EACH_THREAD {
    if (threadIdx.x == 0) {
      *status = kFbGivenUp;
    }
  }
}

// What chunks add up to.
struct FbTotal {
  fb_u32 finished;
  fb_u32 dc[3];

  FB_DEVICE FbTotal operator+(const FbTotal& other) const {
    return {finished + other.finished,
            {dc[0] + other.dc[0], dc[1] + other.dc[1], dc[2] + other.dc[2]}};
  }
};

// Sums up over the chunks, and judges; one block a scan.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_place(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  FB_TOGETHER;
  FB_SHARED FbTotal totals[2][kFbBlock];
  FB_SHARED FbTotal before;
  FB_SHARED bool is_bad;
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  fb_chunk* chunks = reinterpret_cast<fb_chunk*>(scratch + scan.chunks);
  FB_EACH_THREAD {
    if (threadIdx.x == 0) {
      before = {0, {0, 0, 0}};
      is_bad = false;
    }
  }
  FB_SYNC;
  for (fb_u32 first = 0; first < scan.chunk_count; first += kFbBlock) {
    FB_EACH_THREAD {
      FbTotal total = {0, {0, 0, 0}};
      if (first + threadIdx.x < scan.chunk_count) {
        const fb_chunk& chunk = chunks[first + threadIdx.x];
        total = {chunk.finished, {chunk.dc[0], chunk.dc[1], chunk.dc[2]}};
      }
      totals[0][threadIdx.x] = total;
    }
    FB_SYNC;
    // Hillis and Steele, "Data Parallel Algorithms", Communications of the ACM 29, 1986.
    fb_u32 from = 0;
    for (fb_u32 distance = 1; distance < kFbBlock; distance *= 2) {
      FB_EACH_THREAD {
        const FbTotal& total = totals[from][threadIdx.x];
        totals[1 - from][threadIdx.x] =
            threadIdx.x < distance ? total : totals[from][threadIdx.x - distance] + total;
      }
      FB_SYNC;
      from = 1 - from;
    }
    FB_EACH_THREAD {
      if (first + threadIdx.x < scan.chunk_count) {
        fb_chunk& chunk = chunks[first + threadIdx.x];
        const FbTotal all = threadIdx.x == 0 ? before : before + totals[from][threadIdx.x - 1];
        const fb_u32 exit = first + threadIdx.x == 0 ? 0 : (&chunk)[-1].exit;
        const bool is_needed = all.finished < scan.end;
        const bool is_flawed = chunk.flaw != kFbNone && all.finished + chunk.flaw < scan.end;
        if ((is_needed && chunk.entry != exit) || is_flawed) {
          is_bad = true;
        }
        chunk.finished = all.finished;
        FB_UNROLL
        for (fb_u32 component = 0; component < 3; component++) {
          chunk.dc[component] = all.dc[component];
        }
      }
    }
    FB_SYNC;
    FB_EACH_THREAD {
      if (threadIdx.x == 0) {
        before = before + totals[from][kFbBlock - 1];
      }
    }
    FB_SYNC;
  }
  FB_EACH_THREAD {
    if (threadIdx.x == 0) {
      *reinterpret_cast<fb_u32*>(scratch + scan.status) = !is_bad && before.finished >= scan.end;
    }
  }
}

// Writes the coefficients of the blocks that are wanted.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_write(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  FB_TOGETHER;
  FB_SHARED FbScanTables tables;
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  const fb_u32 first = blockIdx.x * kFbBlock;
  if (first >= scan.chunk_count || *reinterpret_cast<const fb_u32*>(scratch + scan.status) == 0) {
    return;
  }
  const fb_chunk* chunks = reinterpret_cast<const fb_chunk*>(scratch + scan.chunks);
  const fb_u32 end = first + kFbBlock;
  if (chunks[first].finished >= scan.end ||
      (end < scan.chunk_count && chunks[end].finished < scan.first)) {
    return;
  }
  FB_EACH_THREAD { tables.load(scan, scratch); }
  FB_SYNC;
  FB_EACH_THREAD {
    const fb_u32 index = fb_thread();
    const bool is_before = index + 1 < scan.chunk_count && chunks[index + 1].finished < scan.first;
    if (index < scan.chunk_count && !is_before && chunks[index].finished < scan.end) {
      const fb_chunk& chunk = chunks[index];
      FbWrite write(scan, scratch, chunk);
      const fb_u32 slack = chunk.exit == kFbNone ? 0 : chunk.exit & 0xff;
      fb_decode_chunk(scan, tables, index, chunk.entry, slack, write);
    }
  }
}

#endif
