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
#ifndef FOREBAY_KERNELS_HUFFMAN_H
#define FOREBAY_KERNELS_HUFFMAN_H

#include "chunk.h"
#include "codes.h"

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
// block's agree. Whether the block's first chunk sees what another block is about to change makes
// no difference in the end. A scan that takes a block too many rounds is given up.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_settle(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  FB_TOGETHER;
  FB_SHARED FbScanTables tables;
  FB_SHARED fb_u32 entries[kFbBlock];
  FB_SHARED fb_u32 exits[kFbBlock];
  FB_SHARED bool is_wrong[kFbBlock];
  FB_SHARED bool is_settled;
  FB_SHARED bool is_given_up;
  const fb_scan& scan = fb_scan_of_block(blob, jobs);
  if (blockIdx.x * kFbBlock >= scan.chunk_count) {
    return;
  }
  volatile fb_u32* status = reinterpret_cast<fb_u32*>(scratch + scan.status);
  const volatile fb_chunk* chunks = reinterpret_cast<const fb_chunk*>(scratch + scan.chunks);
  FB_EACH_THREAD {
    // One thread looks: another block may change it meanwhile.
    if (threadIdx.x == 0) {
      is_given_up = *status == kFbGivenUp;
    }
    const bool is_one = fb_thread() < scan.chunk_count;
    entries[threadIdx.x] = is_one ? chunks[fb_thread()].entry : kFbNone;
    exits[threadIdx.x] = is_one ? chunks[fb_thread()].exit : kFbNone;
  }
  FB_SYNC;
  if (is_given_up) {
    return;
  }
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
