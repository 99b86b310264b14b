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
FB_TABLE fb_u8 kFbNatural[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

// Bits of a chunk, without stuffing. Behind the end of the data, or a marker, come zeros.
class FbBits {
 public:
  fb_u64 bits = 0;
  fb_i32 count = 0;        // how many of `bits`, from the top, are valid
  fb_u32 position = 0;     // bits that were taken
  fb_u32 limit = kFbNone;  // the position of the chunk's end, once it is known
  fb_u32 stop = kFbNone;   // and that of the end of the data
  bool is_last = false;    // the data ends in this chunk

  FB_DEVICE FbBits(const fb_scan& scan, fb_u32 chunk)
      : words_(reinterpret_cast<const fb_u32*>(scan.data)), bytes_(scan.bytes) {
    word_ = chunk * (scan.chunk_bytes / 4);
    boundary_ = word_ + scan.chunk_bytes / 4;
    skip_ = scan.skip;
    if (chunk > 0) {
      // Stuffing belongs to the byte before it.
      const bool is_stuffed = (load(word_ - 1) & 0xff) == 0xff && load(word_) >> 24 == 0;
      skip_ = is_stuffed ? 1 : 0;
    }
    ahead_ = load(word_);
  }

  // At least 32 bits: a code of at most 16, and a value of at most 15.
  FB_DEVICE void fill() {
    while (count < 32) {
      if (word_ == boundary_ && limit == kFbNone && !is_at_end()) {
        limit = position + count;
      }
      const fb_u32 word = ahead_;
      word_++;
      ahead_ = load(word_);
      const fb_u32 has_ones = (~word - 0x01010101u) & word & 0x80808080u;
      if (has_ones == 0 && skip_ == 0 && word_ * 4 <= bytes_) {
        bits |= static_cast<fb_u64>(word) << (32 - count);
        count += 32;
        return;
      }
      fill_by_bytes(word);
    }
  }

  FB_DEVICE void drop(fb_u32 length) {
    bits <<= length;
    count -= length;
    position += length;
  }

 private:
  const fb_u32* words_;
  fb_u32 bytes_;     // 0 behind the end of the data
  fb_u32 word_;      // the next one's number
  fb_u32 boundary_;  // that of the first one of the next chunk
  fb_u32 skip_;      // bytes of the next word that are none of the data
  fb_u32 ahead_;     // the next word

  FB_DEVICE bool is_at_end() const { return word_ * 4 + skip_ >= bytes_; }

  // Whole words: the host leaves room behind a file.
  FB_DEVICE fb_u32 load(fb_u32 word) const { return word * 4 < bytes_ ? fb_swap(words_[word]) : 0; }

  // The word before `word_`.
  FB_DEVICE void fill_by_bytes(fb_u32 word) {
    const fb_u32 first = (word_ - 1) * 4;
    fb_u32 i = skip_;
    skip_ = 0;
    for (; i < 4; i++) {
      const fb_u32 byte = word >> (24 - 8 * i) & 0xff;
      const fb_u32 next = i < 3 ? word >> (16 - 8 * i) & 0xff : ahead_ >> 24;
      const bool is_in = first + i < bytes_;
      const bool is_escape = byte == 0xff;
      if (!is_in || (is_escape && (next != 0 || first + i + 1 >= bytes_))) {
        end();
        return;
      }
      bits |= static_cast<fb_u64>(byte) << (56 - count);
      count += 8;
      if (is_escape && i == 3) {
        skip_ = 1;
      }
      i += is_escape ? 1 : 0;
    }
  }

  FB_DEVICE void end() {
    if (stop == kFbNone) {
      stop = position + count;
      is_last = limit == kFbNone;
      limit = is_last ? stop : limit;
      bytes_ = 0;
    }
    count = 64;
  }
};

// What the bits begin with. Bits 0-4: length of the first code; 5-9: with its value's bits; 10-13:
// of these alone; 14-18: how far k advances, 0 for the end of the block. Then, for AC, a stride of
// all codes that are complete: bits 19-22 their length with all values, 0 for none; 23-28 how far k
// advances; 29: the end of the block follows, and is taken, too.
struct FbEntry {
  fb_u32 code;

  FB_DEVICE fb_u32 length() const { return code & 31; }
  FB_DEVICE fb_u32 total() const { return code >> 5 & 31; }
  FB_DEVICE fb_u32 size() const { return code >> 10 & 15; }
  FB_DEVICE fb_u32 advance() const { return code >> 14 & 31; }
  FB_DEVICE fb_u32 stride() const { return code >> 19 & 15; }
  FB_DEVICE fb_u32 stride_advance() const { return code >> 23 & 63; }
  FB_DEVICE bool stride_ends() const { return (code >> 29 & 1) != 0; }
};

// Where the end of a block puts k.
constexpr fb_u32 kFbEndOfBlock = 128;

FB_DEVICE FbEntry fb_entry(fb_u32 length, fb_u32 symbol, bool is_dc) {
  const fb_u32 size = is_dc ? symbol : symbol & 15;
  const fb_u32 run = is_dc ? 0 : symbol >> 4;
  const bool is_end = !is_dc && size == 0 && run != 15;
  const fb_u32 advance = is_end ? 0 : run + 1;
  return {advance << 14 | size << 10 | (length + size) << 5 | length};
}

// The code on top, if it is longer than the look-up; 0 if there is none.
FB_DEVICE FbEntry fb_long_entry(const fb_table& table, const fb_codes& codes, fb_u64 bits,
                                bool is_dc) {
  const fb_u32 top = static_cast<fb_u32>(bits >> 48);
  for (fb_u32 length = kFbLook + 1; length <= 16; length++) {
    if (top < table.limits[length]) {
      const fb_i32 place = static_cast<fb_i32>(top >> (16 - length)) + table.offsets[length];
      return fb_entry(length, codes.symbols[place], is_dc);
    }
  }
  return {0};
}

// The value of the `size` bits, at most 15, behind `length` others (F.2.2.1 of the JPEG standard).
FB_DEVICE fb_i32 fb_value(fb_u64 bits, fb_u32 length, fb_u32 size) {
  // Shifts by 32 are none on the host.
  const fb_u32 top = static_cast<fb_u32>(bits << length >> 32);
  const fb_i32 value = static_cast<fb_i32>(top >> 1 >> (31 - size));
  return top >> 31 != 0 ? value : value - (1 << size) + 1;
}

// Counts what is in a chunk.
struct FbCount {
  fb_u32 finished = 0;
  fb_u32 flaw = kFbNone;
  fb_u32 dc0 = 0, dc1 = 0, dc2 = 0;  // sums wrap

  FB_DEVICE void first(fb_u32 component, fb_i32 difference) {
    dc0 += component == 0 ? static_cast<fb_u32>(difference) : 0;
    dc1 += component == 1 ? static_cast<fb_u32>(difference) : 0;
    dc2 += component == 2 ? static_cast<fb_u32>(difference) : 0;
  }
  FB_DEVICE bool wants() const { return false; }
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
  fb_u32 dc0, dc1, dc2;
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
    dc0 += component == 0 ? static_cast<fb_u32>(difference) : 0;
    dc1 += component == 1 ? static_cast<fb_u32>(difference) : 0;
    dc2 += component == 2 ? static_cast<fb_u32>(difference) : 0;
    if (into != nullptr) {
      into[0] = static_cast<fb_i16>(component == 0 ? dc0 : component == 1 ? dc1 : dc2);
    }
  }
  // Whether what comes is to be written.
  FB_DEVICE bool wants() const { return into != nullptr; }
  FB_DEVICE void other(fb_u32 place, fb_i32 value) {
    into[kFbNatural[place]] = static_cast<fb_i16>(value);
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
  for (;;) {
    in.fill();
    if (in.position >= in.limit) {
      break;
    }
    const bool is_dc = k == 0;
    const fb_table& table = tables[is_dc ? of.dc : of.ac];
    FbEntry code = {table.entries[in.bits >> (64 - kFbLook)]};
    // Not past the last place, where another block's codes begin, nor the chunk's end, where all
    // threads must stop at the same code.
    const fb_u32 far = k + code.stride_advance();
    if (code.stride() != 0 && far < 64 && in.position + code.stride() <= in.limit && !is_dc &&
        !sink.wants()) {
      in.drop(code.stride());
      k = code.stride_ends() ? kFbEndOfBlock : far;
    } else {
      if (code.code == 0) {
        code = fb_long_entry(table, scan.codes[is_dc ? of.dc : of.ac], in.bits, is_dc);
        if (code.code == 0) {
          sink.flawed();
          in.drop(1);
          continue;
        }
      }
      k = code.advance() == 0 ? kFbEndOfBlock : k + code.advance();
      if (is_dc) {
        sink.first(of.component, fb_value(in.bits, code.length(), code.size()));
      } else if (sink.wants() && code.size() > 0 && k <= 64) {
        sink.other(k - 1, fb_value(in.bits, code.length(), code.size()));
      }
      in.drop(code.total());
    }
    if (k >= 64) {
      if (k > 64 && k < kFbEndOfBlock) {
        sink.flawed();
      }
      if (in.position > in.stop) {
        break;
      }
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

// The thread's chunk; kFbNone for lanes that have none.
FB_DEVICE fb_u32 fb_chunk_of_thread() {
  const fb_u32 lane = fb_thread() % 32;
  return lane < kFbLanes ? fb_thread() / 32 * kFbLanes + lane : kFbNone;
}

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

// Adds the stride to the entry for `top`.
FB_DEVICE fb_u32 fb_with_stride(FbEntry entry, const fb_codes& codes, fb_u32 top) {
  FbEntry next = entry;
  fb_u32 length = 0;
  fb_u32 advance = 0;
  fb_u32 ends = 0;
  while (next.code != 0 && length + next.total() <= kFbLook && ends == 0 &&
         advance + next.advance() < 64) {
    length += next.total();
    advance += next.advance();
    ends = next.advance() == 0 ? 1 : 0;
    next = fb_find(codes, top << length & 0xffff, false);
  }
  return entry.code | length << 19 | advance << 23 | ends << 29;
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
  table.entries[index] = is_dc ? entry.code : fb_with_stride(entry, codes, top);
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

// Decodes every chunk as if a block began with it; one thread a chunk, here and below.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_guess(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  const fb_u32 index = fb_chunk_of_thread();
  if (index < scan.chunk_count) {
    fb_count_chunk(scan, scratch, index, 0);
  }
}

// Decodes chunks again that began where the one before does not end any more. Whether a thread sees
// what another one is about to change makes no difference in the end.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_settle(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  const fb_u32 index = fb_chunk_of_thread();
  if (index == 0 || index >= scan.chunk_count) {
    return;
  }
  const volatile fb_chunk* chunks = reinterpret_cast<const fb_chunk*>(scratch + scan.chunks);
  const fb_u32 entry = chunks[index - 1].exit;
  if (entry != chunks[index].entry) {
    fb_count_chunk(scan, scratch, index, entry);
  }
}

// Chunks that are read at once.
constexpr fb_u32 kFbAtOnce = 8;

// Sums up over the chunks, and judges; one thread a scan.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_place(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  if (fb_thread() != 0) {
    return;
  }
  fb_chunk* chunks = reinterpret_cast<fb_chunk*>(scratch + scan.chunks);
  fb_u32 finished = 0;
  fb_u32 dc[3] = {0, 0, 0};
  fb_u32 exit = 0;
  bool is_good = true;
  for (fb_u32 first = 0; first < scan.chunk_count; first += kFbAtOnce) {
    // Loads do not wait for each other.
    fb_chunk some[kFbAtOnce];
    FB_UNROLL
    for (fb_u32 i = 0; i < kFbAtOnce; i++) {
      some[i] = chunks[first + i < scan.chunk_count ? first + i : first];
    }
    FB_UNROLL
    for (fb_u32 i = 0; i < kFbAtOnce; i++) {
      if (first + i < scan.chunk_count) {
        const fb_chunk& chunk = some[i];
        is_good &= finished >= scan.end || chunk.entry == exit;
        is_good &= chunk.flaw == kFbNone || finished + chunk.flaw >= scan.end;
        exit = chunk.exit;
        fb_chunk& to = chunks[first + i];
        to.finished = finished;
        finished += chunk.finished;
        FB_UNROLL
        for (fb_u32 component = 0; component < 3; component++) {
          to.dc[component] = dc[component];
          dc[component] += chunk.dc[component];
        }
      }
    }
  }
  *reinterpret_cast<fb_u32*>(scratch + scan.status) = is_good && finished >= scan.end;
}

// Writes the coefficients of the blocks that are wanted.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_write(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  const fb_u32 index = fb_chunk_of_thread();
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
