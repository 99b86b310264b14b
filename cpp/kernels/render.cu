// Renders a batch of images of any sizes: a pass of all of them is two launches. One before makes
// planes of coefficients, where there are any.
//
// | kernel             | CPU reference (rust/codec/src/pixel) | rounding                      |
// |--------------------|--------------------------------------|-------------------------------|
// | fb_inverse_dct_all | libjpeg-turbo's jidctint.c, idct.h   | half up at 11, then 18 bits   |
// | fb_resample_across | horizontal/scalar.rs                 | int32 sums, half up, clamped  |
// | fb_resample_down   | vertical/scalar.rs                   | int32 sums, half up, clamped  |
// |  - their input     | gather/scalar.rs, here gather.h      | as there                      |
// |  - its colour      | color/scalar.rs, here color.h        | 8 bits after each operation   |
// |  - its write       | write/scalar.rs                      | in the tables, by the host    |
// | fb_levels_to_tables| color/levels.rs, here levels.h       | as there                      |
// | fb_erase           | write/mod.rs                         | by the host                   |
//
// All: grid (tiles of the largest job, jobs), block (kFbBlock). `jobs` is the blob offset of the
// launch's first fb_job, a multiple of 8; slots are aligned to their elements. The host has checked
// that every address that a job leads to exists (rust/cuda/src/pack/check.rs).
//
// device.h or host.h comes first, by the compiler's command line.
#include "color.h"
#include "gather.h"
#include "huffman.h"
#include "idct.h"
#include "levels.h"
#include "render.h"
#include "source.h"

// One thread a block of a component; grid (tiles of the largest, components). `jobs` is the blob
// offset of the first fb_blocks.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_inverse_dct_all(const fb_u8* __restrict__ blob, fb_u8*, fb_u64 jobs) {
  const fb_blocks& blocks = reinterpret_cast<const fb_blocks*>(blob + jobs)[blockIdx.y];
  const fb_u32 index = blockIdx.x * kFbBlock + threadIdx.x;
  if (index < blocks.across * blocks.down) {
    fb_block_to_samples(blocks, index);
  }
}

// The one input of output i, on an axis that is not weighted.
FB_DEVICE fb_u32 fb_copied_from(const fb_axis& axis, const fb_u8* blob, fb_u32 i) {
  if (axis.kind == FB_AXIS_LIST) {
    return reinterpret_cast<const fb_u32*>(blob + axis.table)[i];
  }
  return axis.first + static_cast<fb_u32>(axis.step) * i;
}

constexpr fb_u32 kFbAll = ~0u;

// Adds those inputs of output i of a weighted axis that lie in [begin, end); `pixel` maps an input
// position to its pixel.
template <class Pixel>
FB_DEVICE FbRgb fb_add_taps(FbRgb sum, const fb_axis& axis, const fb_u8* blob, fb_u32 i,
                            fb_u32 begin, fb_u32 end, Pixel pixel) {
  const fb_span span = reinterpret_cast<const fb_span*>(blob + axis.table)[i];
  const fb_i16* weights = reinterpret_cast<const fb_i16*>(blob + axis.weights) + i;
  const fb_u32 skipped = span.start < begin ? begin - span.start : 0;
  const fb_u32 left = span.start < end ? end - span.start : 0;
  const fb_u32 taps = span.count < left ? span.count : left;
  weights += static_cast<fb_u64>(skipped) * axis.content_len;
  for (fb_u32 tap = skipped; tap < taps; tap++, weights += axis.content_len) {
    const fb_i32 weight = *weights;
    const FbRgb input = pixel(span.start + tap);
    sum.red += weight * input.red;
    sum.green += weight * input.green;
    sum.blue += weight * input.blue;
  }
  return sum;
}

// Where sums begin, so that they are rounded half up.
FB_DEVICE FbRgb fb_half(const fb_axis& axis) {
  const fb_i32 half = 1 << axis.precision >> 1;
  return {half, half, half};
}

FB_DEVICE FbRgb fb_rounded(const fb_axis& axis, FbRgb sum) {
  return {fb_clamp_u8(sum.red >> axis.precision), fb_clamp_u8(sum.green >> axis.precision),
          fb_clamp_u8(sum.blue >> axis.precision)};
}

// Rows of a tile of fb_resample_across that is as wide as a block; and at most, of narrow ones.
constexpr fb_u32 kFbTileRows = 8;
constexpr fb_u32 kFbMostTileRows = 32;
// Input pixels that a block keeps: each is made once, and weighted for several outputs. A row that
// has more is taken in pieces.
constexpr fb_u32 kFbKept = 4096;

// Pixels [begin, end) of some rows, made by all threads of the block.
template <class Pixel>
FB_DEVICE void fb_keep(fb_u32* kept, fb_u32 begin, fb_u32 end, fb_u32 top, fb_u32 rows,
                       Pixel pixel) {
  const fb_u32 length = end - begin;
  fb_u32 row = threadIdx.x / length;
  fb_u32 column = threadIdx.x % length;
  for (fb_u32 i = threadIdx.x; i < length * rows; i += kFbBlock) {
    kept[i] = fb_rgbx(pixel(begin + column, top + row));
    column += kFbBlock % length;
    row += kFbBlock / length + (column >= length ? 1 : 0);
    column -= column >= length ? length : 0;
  }
}

// Makes (needed input rows) x (output columns) pixels; those are 4 bytes each in the scratch, so
// that neighbouring threads write, and fb_resample_down reads, whole words. A block makes a tile:
// as many rows of as many columns as the host counts, see across_tiles in pack/batch.rs.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_resample_across(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  FB_TOGETHER;
  FB_SHARED fb_u32 kept[kFbKept];
  FB_SHARED FbRgb sums[kFbBlock];
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
  const fb_u32 length = end - begin < kFbKept ? end - begin : kFbKept;  // of a piece
  const fb_u32 fitting = end - begin > kFbKept ? 1 : kFbKept / length;
  for (fb_u32 first = 0; first < rows; first += fitting) {
    const fb_u32 some = fitting < rows - first ? fitting : rows - first;
    const fb_u32 top = job.across_top + above + first;
    for (fb_u32 piece = begin; piece < end; piece += length) {
      const fb_u32 piece_end = length < end - piece ? piece + length : end;
      FB_EACH_THREAD {
        fb_with_input(job, blob, scratch, [&](auto pixel) {
          fb_keep(kept, piece, piece_end, top, some, pixel);
          return FbRgb{};
        });
      }
      FB_SYNC;
      FB_EACH_THREAD {
        const fb_u32 column = threadIdx.x % width;
        const bool works = column < columns && threadIdx.x < lines * width;
        // A thread has several rows only if these are whole.
        for (fb_u32 row = threadIdx.x / width; row < some && works; row += lines) {
          const fb_u32* line = kept + row * (piece_end - piece);
          FbRgb sum = piece == begin ? fb_half(job.x) : sums[threadIdx.x];
          sum = fb_add_taps(sum, job.x, blob, left + column, piece, piece_end,
                            [&](fb_u32 from) { return fb_rgb(line[from - piece]); });
          if (piece_end == end) {
            const fb_u64 place = static_cast<fb_u64>(above + first + row) * all + left + column;
            reinterpret_cast<fb_u32*>(scratch + job.across)[place] =
                fb_rgbx(fb_rounded(job.x, sum));
          } else {
            sums[threadIdx.x] = sum;
          }
        }
      }
      FB_SYNC;
    }
  }
}

// Output `row` of the y axis; `pixel` maps an input row to its pixel.
template <class Pixel>
FB_DEVICE FbRgb fb_down(const fb_job& job, const fb_u8* blob, fb_u32 row, Pixel pixel) {
  if (job.y.kind != FB_AXIS_WEIGHTED) {
    return pixel(fb_copied_from(job.y, blob, row));
  }
  return fb_rounded(job.y, fb_add_taps(fb_half(job.y), job.y, blob, row, 0, kFbAll, pixel));
}

// The resampled pixel at a column and row of the content.
FB_DEVICE FbRgb fb_resampled(const fb_job& job, const fb_u8* blob, const fb_u8* scratch,
                             fb_u32 column, fb_u32 row) {
  if (job.x.kind == FB_AXIS_WEIGHTED) {
    const fb_u32* pixels = reinterpret_cast<const fb_u32*>(scratch + job.across) + column;
    return fb_down(job, blob, row, [&](fb_u32 from) {
      return fb_rgb(pixels[static_cast<fb_u64>(from - job.across_top) * job.x.content_len]);
    });
  }
  const fb_u32 from_column = fb_copied_from(job.x, blob, column);
  return fb_with_input(job, blob, scratch, [&](auto pixel) {
    return fb_down(job, blob, row, [&](fb_u32 from) { return pixel(from_column, from); });
  });
}

FB_DEVICE fb_u32 fb_output_pixel(const fb_job& job, const fb_u8* blob, const fb_u8* scratch,
                                 fb_u32 index) {
  // Positions before the content wrap around to beyond it.
  const fb_u32 column = index % job.x.out_len - job.x.content_start;
  const fb_u32 row = index / job.x.out_len - job.y.content_start;
  if (column >= job.x.content_len || row >= job.y.content_len) {
    return job.fill;
  }
  return fb_rgbx(fb_color(job, blob, scratch, fb_resampled(job, blob, scratch, column, row)));
}

template <class Element>
FB_DEVICE void fb_store_elements(const fb_output& output, const fb_u8* blob, fb_u32 index,
                                 fb_u32 pixels, fb_u32 rgbx) {
  Element* slot = reinterpret_cast<Element*>(output.address);
  const Element* table = reinterpret_cast<const Element*>(blob + output.table);
  if (output.channels == 3 && output.layout == FB_LAYOUT_CHANNELS_LAST) {
    fb_store_interleaved(slot, table, index, pixels, rgbx);
  } else if (index < pixels) {
    for (fb_u32 channel = 0; channel < output.channels; channel++) {
      const fb_u32 value = rgbx >> 8 * channel & 255;
      slot[static_cast<fb_u64>(channel) * pixels + index] = table[256 * channel + value];
    }
  }
}

FB_DEVICE void fb_store(const fb_output& output, const fb_u8* blob, fb_u8* scratch, fb_u32 index,
                        fb_u32 pixels, fb_u32 rgbx) {
  switch (output.element_bytes) {
    case 1: fb_store_elements<fb_u8>(output, blob, index, pixels, rgbx); break;
    case 2: fb_store_elements<fb_u16>(output, blob, index, pixels, rgbx); break;
    case 4: fb_store_elements<fb_u32>(output, blob, index, pixels, rgbx); break;
    default:
      if (index < pixels) {
        reinterpret_cast<fb_u32*>(scratch + output.address)[index] = rgbx;
      }
  }
}

// One thread a pixel of the whole output, fill included, in the order of memory. Threads beyond
// the last pixel go along to the end: sums and interleaved stores take whole warps.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_resample_down(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_job& job = reinterpret_cast<const fb_job*>(blob + jobs)[blockIdx.y];
  const fb_u32 pixels = job.x.out_len * job.y.out_len;
  const fb_u32 first = blockIdx.x * kFbBlock;
  if (first >= pixels) {
    return;
  }
  const fb_u32 index = first + threadIdx.x;
  const fb_u32 rgbx = index < pixels ? fb_output_pixel(job, blob, scratch, index) : 0;
  if (job.sum != kFbNoSum) {
    // A pixel of 0, beyond the last one, is grey 0.
    const fb_u32 gray = static_cast<fb_u32>(fb_gray(fb_rgb(rgbx)));
    fb_add_sum(reinterpret_cast<fb_u64*>(scratch + job.sum), gray);
  }
  if (job.histogram != kFbNoSum && index < pixels) {
    fb_u32* counts = reinterpret_cast<fb_u32*>(scratch + job.histogram);
    for (fb_u32 channel = 0; channel < 3; channel++) {
      fb_count(counts + 256 * channel + (rgbx >> 8 * channel & 255));
    }
  }
  fb_store(job.output, blob, scratch, index, pixels, rgbx);
}

template <class Element>
FB_DEVICE void fb_erase_pixel(const fb_erasure& erasure, fb_u64 x, fb_u64 y) {
  Element* slot = reinterpret_cast<Element*>(erasure.address);
  const fb_u64 pixel = y * erasure.out_width + x;
  const fb_u64 pixels = static_cast<fb_u64>(erasure.out_width) * erasure.out_height;
  const bool is_last = erasure.layout == FB_LAYOUT_CHANNELS_LAST;
  for (fb_u32 channel = 0; channel < erasure.channels; channel++) {
    const fb_u64 place = is_last ? pixel * erasure.channels + channel : channel * pixels + pixel;
    slot[place] = static_cast<Element>(erasure.values[channel]);
  }
}

// One thread a pixel; grid (tiles of the largest, erasures). `jobs` is the blob offset of the first
// fb_erasure.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_erase(const fb_u8* __restrict__ blob, fb_u8*, fb_u64 jobs) {
  const fb_erasure& erasure = reinterpret_cast<const fb_erasure*>(blob + jobs)[blockIdx.y];
  const fb_u32 index = blockIdx.x * kFbBlock + threadIdx.x;
  if (index >= erasure.width * erasure.height) {
    return;
  }
  const fb_u64 x = erasure.x + index % erasure.width;
  const fb_u64 y = erasure.y + index / erasure.width;
  switch (erasure.element_bytes) {
    case 1: fb_erase_pixel<fb_u8>(erasure, x, y); break;
    case 2: fb_erase_pixel<fb_u16>(erasure, x, y); break;
    default: fb_erase_pixel<fb_u32>(erasure, x, y);
  }
}
