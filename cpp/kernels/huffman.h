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
      fb_chunk* chunk = reinterpret_cast<fb_chunk*>(scratch + scan.chunks) + fb_thread();
      for (fb_u32 seen = 0; seen < kFbSeenOf; seen++) {
        chunk[seen * scan.chunk_count].entry = kFbUnknown;
      }
      chunk->exit = fb_decode_chunk(scan, tables, fb_thread(), 0, 0, pass);
    }
  }
}

// How often a launch of fb_huffman_settle decodes a chunk, at most: photos take up to 12 times.
constexpr fb_u32 kFbRounds = 64;
// A scan's status until fb_huffman_place, if that was not enough.
constexpr fb_u32 kFbGivenUp = 2;

// What a block knows of its chunks: where they ended for the last places that they began at. Where
// several readings of the data go on in parallel, each correction passes along one of them, and the
// next one brings back what was before.
struct FbSeen {
  fb_u32 entries[kFbSeenOf][kFbBlock];
  fb_u32 exits[kFbSeenOf][kFbBlock];
  fb_u32 current[kFbBlock];    // which of these it is now
  fb_u32 following[kFbBlock];  // which of these it becomes; kFbSeenOf: none of them
  fb_u32 wanted[kFbBlock];     // and the entry to decode from then
  bool moves;
  bool is_settled;

  // Takes what is known of a thread's chunk so far.
  FB_DEVICE void begin(const volatile fb_chunk* chunk, fb_u32 chunk_count) {
    for (fb_u32 seen = 0; seen < kFbSeenOf; seen++, chunk += chunk_count) {
      entries[seen][threadIdx.x] = chunk->entry;
      exits[seen][threadIdx.x] = chunk->exit;
    }
    current[threadIdx.x] = 0;
  }

  FB_DEVICE fb_u32 exit(fb_u32 i) const { return exits[current[i]][i]; }

  // Looks for where the thread's chunk goes on from `before`.
  FB_DEVICE void look(fb_u32 before) {
    const fb_u32 i = threadIdx.x;
    fb_u32 found = kFbSeenOf;
    for (fb_u32 seen = 0; seen < kFbSeenOf; seen++) {
      found = entries[seen][i] == before ? seen : found;
    }
    following[i] = found;
    wanted[i] = before;
    if (found == kFbSeenOf) {
      is_settled = false;
    } else if (found != current[i]) {
      moves = true;
    }
  }

  // Goes on where that is known.
  FB_DEVICE void move() {
    const fb_u32 i = threadIdx.x;
    current[i] = following[i] == kFbSeenOf ? current[i] : following[i];
  }

  // Decodes where it is not.
  FB_DEVICE void decode(const fb_scan& scan, const FbScanTables& tables, fb_u8* scratch) {
    const fb_u32 i = threadIdx.x;
    if (following[i] == kFbSeenOf) {
      const fb_u32 place = (current[i] + 1) % kFbSeenOf;
      entries[place][i] = wanted[i];
      exits[place][i] = fb_count_chunk(scan, tables, scratch, fb_thread(), place, wanted[i]);
      current[i] = place;
    }
  }
};

// Decodes chunks again that began where the one before does not end any more, until all of the
// block's agree. Whether the block's first chunk sees what another block is about to change makes
// no difference in the end. A scan that takes a block too many rounds is given up.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_huffman_settle(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  FB_TOGETHER;
  FB_SHARED FbScanTables tables;
  FB_SHARED FbSeen seen;
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
    if (fb_thread() < scan.chunk_count) {
      seen.begin(chunks + fb_thread(), scan.chunk_count);
    }
  }
  FB_SYNC;
  if (is_given_up) {
    return;
  }
  for (fb_u32 round = 0;; round++) {
    bool moves = true;
    bool is_settled = true;
    // A block has 256 chunks, so that nothing moves for longer than that.
    while (moves) {
      FB_EACH_THREAD {
        if (threadIdx.x == 0) {
          seen.moves = false;
          seen.is_settled = true;
        }
      }
      FB_SYNC;
      FB_EACH_THREAD {
        if (fb_thread() < scan.chunk_count) {
          seen.look(threadIdx.x > 0   ? seen.exit(threadIdx.x - 1)
                    : blockIdx.x == 0 ? 0
                                      : chunks[fb_thread() - 1].exit);
        }
      }
      FB_SYNC;
      moves = seen.moves;
      is_settled = seen.is_settled;
      FB_EACH_THREAD {
        if (fb_thread() < scan.chunk_count) {
          seen.move();
        }
      }
      FB_SYNC;
    }
    if (is_settled) {
      break;
    }
    if (round == kFbRounds) {
      FB_EACH_THREAD {
        if (threadIdx.x == 0) {
          *status = kFbGivenUp;
        }
      }
      return;
    }
    if (round == 0) {
      FB_EACH_THREAD { tables.load(scan, scratch); }
      FB_SYNC;
    }
    FB_EACH_THREAD {
      if (fb_thread() < scan.chunk_count) {
        seen.decode(scan, tables, scratch);
      }
    }
    FB_SYNC;
  }
  FB_EACH_THREAD {
    const fb_u32 place = fb_thread() < scan.chunk_count ? seen.current[threadIdx.x] : 0;
    if (place > 0) {
      fb_chunk* first = reinterpret_cast<fb_chunk*>(scratch + scan.chunks) + fb_thread();
      fb_chunk* now = first + place * scan.chunk_count;
      const fb_chunk before = *first;
      *first = *now;
      *now = before;
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
