// Tables by how often a channel has each value: rust/codec/src/pixel/color/levels.rs, operation by
// operation.
#ifndef FOREBAY_KERNELS_LEVELS_H
#define FOREBAY_KERNELS_LEVELS_H

#include "color.h"
#include "render.h"

// What is known of a channel's values.
struct FbCounts {
  fb_i32 least = 255;  // that occurs
  fb_i32 most = 0;
  fb_u32 below = 0;   // pixels of lower values than the thread's
  fb_u32 others = 0;  // pixels of other values than the highest

  FB_DEVICE FbCounts(const fb_u32* counts, fb_i32 value) {
    fb_u32 all = 0;
    for (fb_i32 i = 0; i < 256; i++) {
      const fb_u32 count = counts[i];
      if (count > 0) {
        least = i < least ? i : least;
        most = i;
        others = all;
      }
      below += i < value ? count : 0;
      all += count;
    }
  }
};

FB_DEVICE fb_i32 fb_autocontrast(const FbCounts& counts, fb_i32 value) {
  if (counts.least >= counts.most) {
    return value;
  }
  const float scale = (fb_float(counts.most) - fb_float(counts.least)) * (1.0f / 255.0f);
  return fb_truncate((fb_float(value) - fb_float(counts.least)) / scale);
}

FB_DEVICE fb_i32 fb_equalize(const FbCounts& counts, fb_i32 value) {
  const fb_u32 step = counts.others / 255;
  if (step == 0) {
    return value;
  }
  const fb_u32 spread = (counts.below + step / 2) / step;
  return value == 0 ? 0 : spread > 255 ? 255 : static_cast<fb_i32>(spread);
}

// One thread a value of a channel; grid (3, tables). `jobs` is the blob offset of the first
// fb_levels.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_levels_to_tables(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_levels& levels = reinterpret_cast<const fb_levels*>(blob + jobs)[blockIdx.y];
  const fb_u32 channel = blockIdx.x;
  const fb_i32 value = static_cast<fb_i32>(threadIdx.x);
  const fb_u32* counts = reinterpret_cast<const fb_u32*>(scratch + levels.histogram);
  const FbCounts known(counts + 256 * channel, value);
  const fb_i32 mapped =
      levels.kind == FB_LEVELS_EQUALIZE ? fb_equalize(known, value) : fb_autocontrast(known, value);
  scratch[levels.tables + 256 * channel + threadIdx.x] = static_cast<fb_u8>(mapped);
}

#endif
