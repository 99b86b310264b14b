// What the kernels take from CUDA; included before them when NVRTC compiles them for a GPU.
// host.h is its counterpart for tests.
#ifndef FOREBAY_KERNELS_DEVICE_H
#define FOREBAY_KERNELS_DEVICE_H

#include "render.h"

#define FB_DEVICE __device__ __forceinline__
#define FB_TABLE __device__ const
// Keeps arrays in registers.
#define FB_UNROLL _Pragma("unroll")
// Keeps code short.
#define FB_LOOP _Pragma("unroll 1")

// A kernel whose threads work together: parts that each of them does, with waits between.
#define FB_TOGETHER
#define FB_SHARED __shared__
#define FB_EACH_THREAD
#define FB_SYNC __syncthreads()

// Words that a block's threads share and none writes. The compiler, left to itself, works out at
// every read where they begin.
class FbSharedWords {
 public:
  FB_DEVICE explicit FbSharedWords(const fb_u32* first)
      : address_(static_cast<fb_u32>(__cvta_generic_to_shared(first))) {
    asm volatile("" : "+r"(address_));
  }
  FB_DEVICE fb_u32 operator[](fb_u32 place) const {
    fb_u32 word;
    asm("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address_ + 4 * place));
    return word;
  }

 private:
  fb_u32 address_;
};

// A word that nobody writes.
FB_DEVICE fb_u32 fb_load(const fb_u32* word) { return __ldg(word); }

// A float's bits, and the other way.
FB_DEVICE fb_u32 fb_bits_of(float value) { return __float_as_uint(value); }
FB_DEVICE float fb_float_of(fb_u32 bits) { return __uint_as_float(bits); }

// Bytes the other way round.
FB_DEVICE fb_u32 fb_swap(fb_u32 word) { return __byte_perm(word, 0, 0x0123); }

// Four bytes of eight, `one`'s and then `other`'s, by number: the lowest digit is the lowest
// byte's.
FB_DEVICE fb_u32 fb_pick(fb_u32 one, fb_u32 other, fb_u32 digits) {
  return __byte_perm(one, other, digits);
}

// A pixel of 4 bytes; what lies outside 0 to 255 is the nearest of them.
FB_DEVICE fb_u32 fb_saturated(fb_i32 red, fb_i32 green, fb_i32 blue) {
#if __CUDA_ARCH__ >= 720
  fb_u32 rgbx;
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, 0;" : "=r"(rgbx) : "r"(0), "r"(blue));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %0;" : "+r"(rgbx) : "r"(green), "r"(red));
  return rgbx;
#else
  return static_cast<fb_u32>(min(max(red, 0), 255) | min(max(green, 0), 255) << 8 |
                             min(max(blue, 0), 255) << 16);
#endif
}

// Adds the products of two signed halves and two bytes, the lower ones of `bytes` or the upper.
FB_DEVICE fb_i32 fb_dot_lower(fb_u32 halves, fb_u32 bytes, fb_i32 sum) {
#if __CUDA_ARCH__ >= 610
  asm("dp2a.lo.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(halves), "r"(bytes));
  return sum;
#else
  return sum + static_cast<fb_i16>(halves & 0xffff) * static_cast<fb_i32>(bytes & 255) +
         static_cast<fb_i16>(halves >> 16) * static_cast<fb_i32>(bytes >> 8 & 255);
#endif
}

FB_DEVICE fb_i32 fb_dot_upper(fb_u32 halves, fb_u32 bytes, fb_i32 sum) {
#if __CUDA_ARCH__ >= 610
  asm("dp2a.hi.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(halves), "r"(bytes));
  return sum;
#else
  return fb_dot_lower(halves, bytes >> 16, sum);
#endif
}

constexpr fb_u32 kFbWholeWarp = 0xffffffffu;

// Adds the values of all threads to *sum, one atomic a warp. Every lane of a warp must call it.
// Integer addition in any order gives the same sum.
FB_DEVICE void fb_add_sum(fb_u64* sum, fb_u32 value) {
  for (fb_u32 distance = kFbWarp / 2; distance > 0; distance /= 2) {
    value += __shfl_down_sync(kFbWholeWarp, value, distance);
  }
  if (threadIdx.x % kFbWarp == 0) {
    atomicAdd(sum, static_cast<fb_u64>(value));
  }
}

// Counts one more. In any order it is the same number.
FB_DEVICE void fb_count(fb_u32* place) { atomicAdd(place, 1u); }

// Writes pixel `index`, if it lies before `end`, as three adjacent elements. Every lane of a warp
// must call it, for consecutive indices. Lanes trade pixels first, so that each of the three stores
// of a warp covers 32 adjacent elements instead of every third.
template <class Element>
FB_DEVICE void fb_store_interleaved(Element* slot, const Element* table, fb_u32 index, fb_u32 end,
                                    fb_u32 rgbx) {
  const fb_u32 lane = threadIdx.x % kFbWarp;
  const fb_u64 first = 3ull * (index - lane);
  for (fb_u32 store = 0; store < 3; store++) {
    const fb_u32 place = store * kFbWarp + lane;
    const fb_u32 channel = place % 3;
    const fb_u32 pixel = __shfl_sync(kFbWholeWarp, rgbx, place / 3);
    if (first + place < 3ull * end) {
      slot[first + place] = table[256 * channel + (pixel >> 8 * channel & 255)];
    }
  }
}

#endif
