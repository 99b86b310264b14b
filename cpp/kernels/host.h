// The thin shim by which the host's compiler compiles the kernels for tests: included before them
// in place of device.h. Threads of a grid run one after the other, the last one first: they must
// not depend on what those before have done.
#ifndef FOREBAY_KERNELS_HOST_H
#define FOREBAY_KERNELS_HOST_H

#include <math.h>

#include "scan.h"

// NVRTC, which lays structs out as the host does, knows no offsetof.
static_assert(__builtin_offsetof(fb_source, planes) == 16, "mirrored");
static_assert(__builtin_offsetof(fb_plane, left) == 24, "mirrored");
static_assert(__builtin_offsetof(fb_job, x) == 136, "mirrored");
static_assert(__builtin_offsetof(fb_job, y) == 184, "mirrored");
static_assert(__builtin_offsetof(fb_job, output) == 232, "mirrored");
static_assert(__builtin_offsetof(fb_job, across) == 264, "mirrored");
static_assert(__builtin_offsetof(fb_job, color) == 280, "mirrored");
static_assert(__builtin_offsetof(fb_job, sum) == 296, "mirrored");
static_assert(__builtin_offsetof(fb_job, mean_pixels) == 312, "mirrored");
static_assert(__builtin_offsetof(fb_job, histogram) == 320, "mirrored");
static_assert(__builtin_offsetof(fb_job, gather) == 336, "mirrored");
static_assert(__builtin_offsetof(fb_gather, origin) == 32, "mirrored");
static_assert(__builtin_offsetof(fb_erasure, values) == 44, "mirrored");
static_assert(__builtin_offsetof(fb_blocks, quantisation) == 32, "mirrored");
static_assert(__builtin_offsetof(fb_mixing, taken) == 64, "mirrored");
static_assert(__builtin_offsetof(fb_scan, coefficients) == 32, "mirrored");
static_assert(__builtin_offsetof(fb_scan, first_column) == 72, "mirrored");
static_assert(__builtin_offsetof(fb_scan, blocks) == 96, "mirrored");
static_assert(__builtin_offsetof(fb_scan, codes) == 256, "mirrored");
static_assert(__builtin_offsetof(fb_table, limits) == 4096, "mirrored");

#define FB_DEVICE inline
#define FB_TABLE static const
#define FB_UNROLL
#define FB_LOOP
#define __global__
#define __launch_bounds__(...)

struct FbIndex {
  fb_u32 x = 0;
  fb_u32 y = 0;
};

inline thread_local FbIndex blockIdx;
inline thread_local FbIndex threadIdx;

// Every thread of a block, one after the other.
class FbThreads {
 public:
  FbThreads() { threadIdx.x = kFbBlock; }
  ~FbThreads() { threadIdx.x = 0; }
  bool next() { return threadIdx.x-- > 0; }
};

// The last one to be called does the work of all.
#define FB_TOGETHER \
  if (threadIdx.x != 0) return
#define FB_SHARED static thread_local
#define FB_EACH_THREAD for (FbThreads fb_threads; fb_threads.next();)
#define FB_SYNC

using FbSharedWords = const fb_u32*;

inline fb_u32 fb_load(const fb_u32* word) { return *word; }

inline fb_u32 fb_bits_of(float value) {
  fb_u32 bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float fb_float_of(fb_u32 bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

inline fb_u32 fb_swap(fb_u32 word) { return __builtin_bswap32(word); }

inline fb_u32 fb_pick(fb_u32 one, fb_u32 other, fb_u32 digits) {
  const fb_u64 bytes = static_cast<fb_u64>(other) << 32 | one;
  fb_u32 picked = 0;
  for (fb_u32 place = 0; place < 4; place++) {
    const fb_u32 digit = digits >> 4 * place & 7;
    picked |= static_cast<fb_u32>(bytes >> 8 * digit & 255) << 8 * place;
  }
  return picked;
}

inline fb_u32 fb_saturated(fb_i32 red, fb_i32 green, fb_i32 blue) {
  const auto saturated = [](fb_i32 value) {
    return static_cast<fb_u32>(value < 0 ? 0 : value > 255 ? 255 : value);
  };
  return saturated(red) | saturated(green) << 8 | saturated(blue) << 16;
}

inline fb_i32 fb_dot_lower(fb_u32 halves, fb_u32 bytes, fb_i32 sum) {
  const fb_i32 lower = static_cast<fb_i16>(halves & 0xffff);
  const fb_i32 upper = static_cast<fb_i16>(halves >> 16);
  return sum + lower * static_cast<fb_i32>(bytes & 255) +
         upper * static_cast<fb_i32>(bytes >> 8 & 255);
}

inline fb_i32 fb_dot_upper(fb_u32 halves, fb_u32 bytes, fb_i32 sum) {
  return fb_dot_lower(halves, bytes >> 16, sum);
}

inline void fb_add_sum(fb_u64* sum, fb_u32 value) { *sum += value; }

inline void fb_count(fb_u32* place) { *place += 1; }

template <class Element>
inline void fb_store_interleaved(Element* slot, const Element* table, fb_u32 index, fb_u32 end,
                                 fb_u32 rgbx) {
  if (index >= end) {
    return;
  }
  for (fb_u32 channel = 0; channel < 3; channel++) {
    slot[3ull * index + channel] = table[256 * channel + (rgbx >> 8 * channel & 255)];
  }
}

// Runs `kernel` for every thread of a grid of `columns` x `rows` blocks.
template <class... Arguments>
void fb_launch(void (*kernel)(Arguments...), fb_u32 columns, fb_u32 rows, Arguments... arguments) {
  for (blockIdx.y = rows; blockIdx.y-- > 0;) {
    for (blockIdx.x = columns; blockIdx.x-- > 0;) {
      for (threadIdx.x = kFbBlock; threadIdx.x-- > 0;) {
        kernel(arguments...);
      }
    }
  }
}

#endif
