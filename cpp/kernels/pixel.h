// Pixels, and what lies where in memory.
#ifndef FOREBAY_KERNELS_PIXEL_H
#define FOREBAY_KERNELS_PIXEL_H

#include "render.h"

// 8-bit channels, or sums of them.
struct FbRgb {
  fb_i32 red;
  fb_i32 green;
  fb_i32 blue;
};

FB_DEVICE fb_i32 fb_clamp(fb_i32 value, fb_i32 low, fb_i32 high) {
  return value < low ? low : value > high ? high : value;
}

FB_DEVICE fb_i32 fb_clamp_u8(fb_i32 value) { return fb_clamp(value, 0, 255); }

FB_DEVICE fb_u32 fb_rgbx(FbRgb pixel) {
  return static_cast<fb_u32>(pixel.red | pixel.green << 8 | pixel.blue << 16);
}

FB_DEVICE FbRgb fb_rgb(fb_u32 rgbx) {
  return {static_cast<fb_i32>(rgbx & 255), static_cast<fb_i32>(rgbx >> 8 & 255),
          static_cast<fb_i32>(rgbx >> 16 & 255)};
}

// Calls `visit` with 0 to kCount - 1.
template <fb_u32 kCount, class Visit>
FB_DEVICE void fb_repeat(Visit visit) {
  FB_UNROLL
  for (fb_u32 i = 0; i < kCount; i++) {
    visit(i);
  }
}

// Neighbours in a row that a thread makes together, from a multiple of this on.
constexpr fb_u32 kFbRun = 8;

FB_DEVICE const fb_u8* fb_row(const fb_plane& plane, fb_i32 y) {
  return reinterpret_cast<const fb_u8*>(plane.address + static_cast<fb_u64>(y) * plane.pitch);
}

#endif
