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

#include "scan.h"

// Natural places, by zigzag places.
FB_TABLE fb_u8 kFbNatural[64] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
    41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
    30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// Bits of a chunk, without stuffing. Behind the end of the data, or a marker, come zeros.
struct FbBits {
  const fb_u8* next;
  const fb_u8* boundary;  // of the chunk
  const fb_u8* end;
  fb_u64 bits;
  fb_u32 count;     // how many of `bits`, from the top, are valid
  fb_u32 position;  // bits that were taken
  fb_u32 limit;     // the position of the boundary; kFbNone until it is known
  fb_u32 stop;      // and that of the end of the data
  bool is_last;     // the data ends in this chunk

  FB_DEVICE FbBits(const fb_scan& scan, fb_u32 chunk)
      : next(reinterpret_cast<const fb_u8*>(scan.data) + chunk * scan.chunk_bytes),
        boundary(next + scan.chunk_bytes),
        end(reinterpret_cast<const fb_u8*>(scan.data) + scan.bytes),
        bits(0),
        count(0),
        position(0),
        limit(kFbNone),
        stop(kFbNone),
        is_last(false) {
    // Stuffing belongs to the byte before it.
    if (chunk > 0 && next[-1] == 0xff && next[0] == 0) {
      next++;
    }
  }

  FB_DEVICE bool is_inside() const { return position < limit; }

  // At least 32 bits: a code of at most 16, and a value of at most 15.
  FB_DEVICE void fill() {
    if (count >= 32) {
      return;
    }
    if (next + 4 < end && (next + 4 <= boundary || limit != kFbNone)) {
      const fb_u32 word = static_cast<fb_u32>(next[0]) << 24 | static_cast<fb_u32>(next[1]) << 16 |
                          static_cast<fb_u32>(next[2]) << 8 | next[3];
      const fb_u32 has_ones = (~word - 0x01010101u) & word & 0x80808080u;
      if (has_ones == 0) {
        bits |= static_cast<fb_u64>(word) << (32 - count);
        count += 32;
        next += 4;
        return;
      }
    }
    for (fb_u32 i = 0; i < 4; i++) {
      bits |= static_cast<fb_u64>(byte()) << (56 - count);
      count += 8;
    }
  }

  FB_DEVICE void drop(fb_u32 length) {
    bits <<= length;
    count -= length;
    position += length;
  }

 private:
  FB_DEVICE fb_u8 byte() {
    // Beyond it if stuffing was.
    if (limit == kFbNone && next >= boundary && next != end) {
      limit = position + count;
    }
    if (next != end && next[0] != 0xff) {
      return *next++;
    }
    if (end - next >= 2 && next[1] == 0) {
      next += 2;
      return 0xff;
    }
    if (stop == kFbNone) {
      stop = position + count;
      is_last = limit == kFbNone;
      limit = is_last ? stop : limit;
      end = next;
    }
    return 0;
  }
};

// Length and symbol of the code on top, as in entries; 0 if there is none.
FB_DEVICE fb_u32 fb_code(const fb_table& table, const fb_u8* symbols, fb_u64 bits) {
  const fb_u32 entry = table.entries[bits >> (64 - kFbLook)];
  if (entry != 0) {
    return entry;
  }
  const fb_u32 top = static_cast<fb_u32>(bits >> 48);
  for (fb_u32 length = kFbLook + 1; length <= 16; length++) {
    if (top < table.limits[length]) {
      return symbols[static_cast<fb_i32>(top >> (16 - length)) + table.offsets[length]] << 8 |
             length;
    }
  }
  return 0;
}

// The value of the `size` bits on top, at most 15 (F.2.2.1 of the JPEG standard).
FB_DEVICE fb_i32 fb_value(fb_u64 bits, fb_u32 size) {
  if (size == 0) {
    return 0;
  }
  const fb_i32 value = static_cast<fb_i32>(bits >> (64 - size));
  return value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

// Counts what is in a chunk.
struct FbCount {
  fb_u32 finished = 0;
  fb_u32 flaw = kFbNone;
  fb_i32 dc0 = 0, dc1 = 0, dc2 = 0;

  FB_DEVICE void first(fb_u32 component, fb_i32 difference) {
    dc0 += component == 0 ? difference : 0;
    dc1 += component == 1 ? difference : 0;
    dc2 += component == 2 ? difference : 0;
  }
  FB_DEVICE void other(fb_u32, fb_i32) {}
  FB_DEVICE void flawed() { flaw = flaw == kFbNone ? finished : flaw; }
  // False: that was enough.
  FB_DEVICE bool finish() {
    finished++;
    return true;
  }
};

// Writes coefficients.
struct FbWrite {
  const fb_scan& scan;
  fb_u8* scratch;
  fb_u32 left;  // blocks to the end of those that are wanted
  fb_u32 block;
  fb_u32 column;
  fb_u32 row;  // of the MCU
  fb_i32 dc0, dc1, dc2;
  fb_i16* into;  // nullptr: not wanted

  FB_DEVICE FbWrite(const fb_scan& of, fb_u8* memory, const fb_chunk& chunk)
      : scan(of),
        scratch(memory),
        left(of.end - chunk.finished),
        block(chunk.finished % of.mcu_blocks),
        column(chunk.finished / of.mcu_blocks % of.mcus_across),
        row(chunk.finished / of.mcu_blocks / of.mcus_across),
        dc0(chunk.dc[0]),
        dc1(chunk.dc[1]),
        dc2(chunk.dc[2]) {
    find();
  }

  FB_DEVICE void first(fb_u32 component, fb_i32 difference) {
    dc0 += component == 0 ? difference : 0;
    dc1 += component == 1 ? difference : 0;
    dc2 += component == 2 ? difference : 0;
    if (into != nullptr) {
      into[0] = static_cast<fb_i16>(component == 0 ? dc0 : component == 1 ? dc1 : dc2);
    }
  }
  FB_DEVICE void other(fb_u32 place, fb_i32 value) {
    if (into != nullptr) {
      into[kFbNatural[place]] = static_cast<fb_i16>(value);
    }
  }
  FB_DEVICE void flawed() {}
  FB_DEVICE bool finish() {
    block++;
    if (block == scan.mcu_blocks) {
      block = 0;
      column++;
      if (column == scan.mcus_across) {
        column = 0;
        row++;
      }
    }
    find();
    left--;
    return left > 0;
  }

 private:
  FB_DEVICE void find() {
    const fb_scan_block& place = scan.blocks[block];
    const fb_scan_component& of = scan.components[place.component];
    // What lies before wraps around to beyond.
    const fb_u32 x = column * of.mcu_across + place.x - of.x;
    const fb_u32 y = row * of.mcu_down + place.y - of.y;
    into = nullptr;
    if (x < of.across && y < of.down) {
      into = reinterpret_cast<fb_i16*>(scratch + of.coefficients) + 64ull * (y * of.across + x);
    }
  }
};

// Decodes chunk `index` from the state `entry`; returns the state at its end.
template <class Sink>
FB_DEVICE fb_u32 fb_decode_chunk(const fb_scan& scan, const fb_table* tables, fb_u32 index,
                                 fb_u32 entry, Sink& sink) {
  if (entry == kFbNone) {
    return kFbNone;
  }
  FbBits in(scan, index);
  in.fill();
  in.drop(entry & 0xff);
  fb_u32 k = entry >> 8 & 0xff;
  fb_u32 block = entry >> 16;
  fb_scan_block of = scan.blocks[block];
  while (in.is_inside()) {
    in.fill();
    if (!in.is_inside()) {
      break;
    }
    const fb_u32 number = k == 0 ? of.dc : of.ac;
    const fb_u32 code = fb_code(tables[number], scan.codes[number].symbols, in.bits);
    const fb_u32 symbol = code >> 8;
    const fb_u32 size = k == 0 ? symbol : symbol & 15;
    fb_u32 next = 1;
    if (code == 0) {
      sink.flawed();
      in.drop(1);
      next = k;
    } else {
      in.drop(code & 0xff);
      const fb_i32 value = fb_value(in.bits, size);
      in.drop(size);
      if (k == 0) {
        sink.first(of.component, value);
      } else if (size == 0 && symbol != 0xf0) {
        next = 64;
      } else {
        const fb_u32 place = k + (symbol >> 4);
        if (place > 63) {
          sink.flawed();
        } else if (size > 0) {
          sink.other(place, value);
        }
        next = place + 1;
      }
    }
    k = next;
    if (k >= 64 && in.position <= in.stop) {
      k = 0;
      block = block + 1 == scan.mcu_blocks ? 0 : block + 1;
      of = scan.blocks[block];
      if (!sink.finish()) {
        return kFbNone;
      }
    }
  }
  return in.is_last ? kFbNone : (in.position - in.limit) | k << 8 | block << 16;
}

FB_DEVICE void fb_count_chunk(const fb_scan& scan, fb_u8* scratch, fb_u32 index, fb_u32 entry) {
  FbCount count;
  const fb_table* tables = reinterpret_cast<const fb_table*>(scratch + scan.tables);
  const fb_u32 exit = fb_decode_chunk(scan, tables, index, entry, count);
  fb_chunk& chunk = reinterpret_cast<fb_chunk*>(scratch + scan.chunks)[index];
  chunk = {entry, exit, count.finished, count.flaw, {count.dc0, count.dc1, count.dc2}, 0};
}

FB_DEVICE const fb_scan& fb_scan_of_block(const fb_u8* blob, fb_u64 jobs) {
  return reinterpret_cast<const fb_scan*>(blob + jobs)[blockIdx.y];
}

FB_DEVICE fb_u32 fb_thread() { return blockIdx.x * kFbBlock + threadIdx.x; }

// Grids are (tiles of the largest, scans); `jobs` is the blob offset of the first fb_scan.

// Makes tables ready; one thread an entry.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_tables(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  const fb_u32 number = fb_thread() >> kFbLook;
  const fb_u32 index = fb_thread() & ((1 << kFbLook) - 1);
  const fb_codes& codes = scan.codes[number];
  fb_table& table = reinterpret_cast<fb_table*>(scratch + scan.tables)[number];
  const fb_u32 top = index << (16 - kFbLook);
  fb_u32 code = 0;
  fb_i32 place = 0;
  fb_u32 entry = 0;
  for (fb_u32 length = 1; length <= 16; length++) {
    const fb_i32 offset = place - static_cast<fb_i32>(code);
    code += codes.counts[length - 1];
    place += codes.counts[length - 1];
    const fb_u32 limit = code << (16 - length);
    if (entry == 0 && length <= kFbLook && top < limit) {
      entry = codes.symbols[static_cast<fb_i32>(top >> (16 - length)) + offset] << 8 | length;
    }
    if (index == 0) {
      table.limits[length] = limit;
      table.offsets[length] = offset;
    }
    code <<= 1;
  }
  table.entries[index] = static_cast<fb_u16>(entry);
}

// Decodes every chunk as if a block began with it; one thread a chunk, here and below.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_guess(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  if (fb_thread() < scan.chunk_count) {
    fb_count_chunk(scan, scratch, fb_thread(), 0);
  }
}

// Decodes chunks again that began where the one before does not end any more. Whether a thread sees
// what another one is about to change makes no difference in the end.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_settle(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  const fb_u32 index = fb_thread();
  if (index == 0 || index >= scan.chunk_count) {
    return;
  }
  const volatile fb_chunk* chunks = reinterpret_cast<const fb_chunk*>(scratch + scan.chunks);
  const fb_u32 entry = chunks[index - 1].exit;
  if (entry != chunks[index].entry) {
    fb_count_chunk(scan, scratch, index, entry);
  }
}

// Sums up over the chunks, and judges; one thread a scan.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_place(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  if (fb_thread() != 0) {
    return;
  }
  fb_chunk* chunks = reinterpret_cast<fb_chunk*>(scratch + scan.chunks);
  fb_u32 finished = 0;
  fb_i32 dc[3] = {0, 0, 0};
  fb_u32 exit = 0;
  bool is_good = true;
  for (fb_u32 index = 0; index < scan.chunk_count; index++) {
    const fb_chunk chunk = chunks[index];
    is_good &= finished >= scan.end || chunk.entry == exit;
    is_good &= chunk.flaw == kFbNone || finished + chunk.flaw >= scan.end;
    exit = chunk.exit;
    chunks[index].finished = finished;
    finished += chunk.finished;
    for (fb_u32 i = 0; i < 3; i++) {
      chunks[index].dc[i] = dc[i];
      dc[i] += chunk.dc[i];
    }
  }
  *reinterpret_cast<fb_u32*>(scratch + scan.status) = is_good && finished >= scan.end;
}

// Writes the coefficients of the blocks that are wanted.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_write(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  const fb_u32 index = fb_thread();
  if (index >= scan.chunk_count || *reinterpret_cast<const fb_u32*>(scratch + scan.status) == 0) {
    return;
  }
  const fb_chunk* chunks = reinterpret_cast<const fb_chunk*>(scratch + scan.chunks);
  const fb_chunk& chunk = chunks[index];
  const bool is_before = index + 1 < scan.chunk_count && chunks[index + 1].finished < scan.first;
  if (is_before || chunk.finished >= scan.end) {
    return;
  }
  FbWrite write(scan, scratch, chunk);
  const fb_table* tables = reinterpret_cast<const fb_table*>(scratch + scan.tables);
  fb_decode_chunk(scan, tables, index, chunk.entry, write);
}

#endif
