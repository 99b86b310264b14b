// The first kernel of a pass whose x axis is weighted.
#ifndef FOREBAY_KERNELS_ACROSS_H
#define FOREBAY_KERNELS_ACROSS_H

#include "gather.h"
#include "weigh.h"

// Rows that a thread of fb_resample_across makes; and at most of a tile, of narrow ones.
constexpr fb_u32 kFbTileRows = 8;
constexpr fb_u32 kFbMostTileRows = 32;
// Blocks of a multiprocessor that hide each other's waits.
constexpr fb_u32 kFbAcrossBlocks = 4;
// Input pixels that a block keeps, whole runs: each is made once, and weighted for several outputs.
// A row that has more is taken in pieces.
constexpr fb_u32 kFbKept = 4096;

// Runs of input pixels from column `from` on of some rows, made by all threads of the block; `line`
// makes a row ready. What lies outside columns [begin, end) is any.
template <class Line>
FB_DEVICE void fb_keep(fb_u32* kept, fb_u32 from, fb_u32 runs, fb_u32 begin, fb_u32 end, fb_u32 top,
                       fb_u32 rows, Line line) {
  // That make a row: a warp, or an equal part of one.
  const fb_u32 threads = runs > 16 ? kFbWarp : runs > 8 ? 16 : runs > 4 ? 8 : 4;
  for (fb_u32 row = threadIdx.x / threads; row < rows; row += kFbBlock / threads) {
    const auto pixels = line(top + row);
    for (fb_u32 place = threadIdx.x % threads; place < runs; place += threads) {
      fb_u32 run[kFbRun];
      pixels.run(from + place * kFbRun, begin, end, run);
      const fb_u32 first = (row * runs + place) * kFbRun;
      fb_repeat<kFbRun>([&](fb_u32 i) { kept[first + i] = run[i]; });
    }
  }
}

// Makes (needed input rows) x (output columns) pixels; those are 4 bytes each in the scratch, so
// that neighbouring threads write, and fb_resample_down reads, whole words. A block makes a tile:
// as many rows of as many columns as the host counts, see across_tiles in pack/batch.rs.
extern "C" __global__ void __launch_bounds__(kFbBlock, kFbAcrossBlocks)
    fb_resample_across(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  FB_TOGETHER;
  alignas(16) FB_SHARED fb_u32 kept[kFbKept];
  FB_SHARED FbRgb unfinished[kFbBlock];
  const fb_job& job = reinterpret_cast<const fb_job*>(blob + jobs)[blockIdx.y];
  const fb_u32 all = job.x.content_len;
  const fb_u32 width = all < kFbBlock ? all : kFbBlock;
  const fb_u32 lines = kFbBlock / width;  // that the block's threads make at once
  const fb_u32 across = (all + width - 1) / width;
  const fb_u32 left = blockIdx.x % across * width;
  const fb_u32 high = lines * kFbTileRows < kFbMostTileRows ? lines * kFbTileRows : kFbMostTileRows;
  const fb_u32 above = blockIdx.x / across * high;
  if (above >= job.across_rows) {
    return;
  }
  const fb_u32 columns = width < all - left ? width : all - left;
  const fb_u32 below = job.across_rows - above;
  const fb_u32 rows = high < below ? high : below;
  // Spans go to the right or, mirrored, to the left.
  const fb_span* spans = reinterpret_cast<const fb_span*>(blob + job.x.table) + left;
  const fb_span one = spans[0];
  const fb_span other = spans[columns - 1];
  const fb_u32 begin = one.start < other.start ? one.start : other.start;
  const fb_u32 one_end = one.start + one.count;
  const fb_u32 other_end = other.start + other.count;
  const fb_u32 end = one_end > other_end ? one_end : other_end;
  // Rows are kept from where a run begins in the planes.
  const fb_u32 early = (static_cast<fb_u32>(job.source.origin_x) + begin) % kFbRun;
  const fb_u32 needed = (early + end - begin + kFbRun - 1) / kFbRun * kFbRun;
  const fb_u32 length = needed < kFbKept ? needed : kFbKept;  // of a piece
  const fb_u32 fitting = needed > kFbKept ? 1 : kFbKept / length;
  for (fb_u32 first = 0; first < rows; first += fitting) {
    const fb_u32 some = fitting < rows - first ? fitting : rows - first;
    const fb_u32 top = job.across_top + above + first;
    for (fb_u32 done = 0; done < needed; done += length) {
      const fb_u32 piece = begin - early + done;
      const fb_u32 piece_begin = done == 0 ? begin : piece;
      const fb_u32 taken = length < needed - done ? length : needed - done;
      const fb_u32 piece_end = done + taken < needed ? piece + taken : end;
      FB_EACH_THREAD {
        fb_with_input(job, blob, scratch, [&](const auto& input) {
          input.with_lines([&](const auto& line) {
            fb_keep(kept, piece, taken / kFbRun, piece_begin, piece_end, top, some, line);
          });
        });
      }
      FB_SYNC;
      FB_EACH_THREAD {
        const fb_u32 column = threadIdx.x % width;
        const fb_u32 line = threadIdx.x / width;
        if (column < columns && line < lines && line < some) {
          const fb_u32 mine = (some - line + lines - 1) / lines;
          const fb_u32 apart = lines * length;
          const FbTaps taps(job.x, blob, left + column, piece_begin, piece_end);
          const fb_u32* pixels = kept + (line * length + taps.start - piece);
          const fb_u64 place = static_cast<fb_u64>(above + first + line) * all + left + column;
          fb_u32* made = reinterpret_cast<fb_u32*>(scratch + job.across) + place;
          if (length == needed && mine == kFbTileRows) {
            FbRgb sums[kFbTileRows];
            fb_repeat<kFbTileRows>([&](fb_u32 k) { sums[k] = fb_half(job.x); });
            fb_weigh_rows(sums, taps, pixels, apart);
            fb_repeat<kFbTileRows>([&](fb_u32 k) {
              made[static_cast<fb_u64>(k) * lines * all] = fb_rounded(job.x, sums[k]);
            });
          } else {
            // Several rows only if these are whole.
            for (fb_u32 k = 0; k < mine; k++) {
              FbRgb sums[1] = {done == 0 ? fb_half(job.x) : unfinished[threadIdx.x]};
              fb_weigh_rows(sums, taps, pixels + k * apart, apart);
              if (piece_end == end) {
                made[static_cast<fb_u64>(k) * lines * all] = fb_rounded(job.x, sums[0]);
              } else {
                unfinished[threadIdx.x] = sums[0];
              }
            }
          }
        }
      }
      FB_SYNC;
    }
  }
}

#endif
