// Weighted sums of an axis: rust/codec/src/pixel/horizontal/scalar.rs and vertical/scalar.rs.
#ifndef FOREBAY_KERNELS_WEIGH_H
#define FOREBAY_KERNELS_WEIGH_H

#include "pixel.h"

constexpr fb_u32 kFbAll = ~0u;

// The one input of output i, on an axis that is not weighted.
FB_DEVICE fb_u32 fb_copied_from(const fb_axis& axis, const fb_u8* blob, fb_u32 i) {
  if (axis.kind == FB_AXIS_LIST) {
    return reinterpret_cast<const fb_u32*>(blob + axis.table)[i];
  }
  return axis.first + static_cast<fb_u32>(axis.step) * i;
}

// Those inputs of output i of a weighted axis that lie in [begin, end).
struct FbTaps {
  const fb_i16* weights;
  fb_u32 apart;  // weights of neighbours
  fb_u32 start;
  fb_u32 count;

  FB_DEVICE FbTaps(const fb_axis& axis, const fb_u8* blob, fb_u32 i, fb_u32 begin, fb_u32 end) {
    const fb_span span = reinterpret_cast<const fb_span*>(blob + axis.table)[i];
    const fb_u32 behind = span.start + span.count < end ? span.start + span.count : end;
    start = span.start < begin ? begin : span.start;
    count = start < behind ? behind - start : 0;
    apart = axis.content_len;
    weights = reinterpret_cast<const fb_i16*>(blob + axis.weights) + i +
              static_cast<fb_u64>(start - span.start) * apart;
  }

  // Calls `visit` for two neighbours at a time: with how far the second one lies behind the first,
  // and with their weights, the first one's in the lower half. One that is left over is visited
  // as both, and weighs nothing as the second.
  template <class Visit>
  FB_DEVICE void each_two(Visit visit) const {
    const fb_i16* weight = weights;
    FB_LOOP
    for (fb_u32 tap = 0; tap < count; tap += 2, weight += 2ull * apart) {
      const fb_u32 next = tap + 1 < count ? 1 : 0;
      const fb_u32 lower = static_cast<fb_u16>(weight[0]);
      const fb_u32 upper = next == 0 ? 0 : static_cast<fb_u16>(weight[apart]);
      visit(next, lower | upper << 16);
    }
  }
};

// Adds two pixels of 4 bytes, each by its weight.
FB_DEVICE void fb_add_two(FbRgb& sum, fb_u32 weights, fb_u32 one, fb_u32 other) {
  const fb_u32 red_and_green = fb_pick(one, other, 0x5140);
  const fb_u32 blue = fb_pick(one, other, 0x0062);
  sum.red = fb_dot_lower(weights, red_and_green, sum.red);
  sum.green = fb_dot_upper(weights, red_and_green, sum.green);
  sum.blue = fb_dot_lower(weights, blue, sum.blue);
}

// Where sums begin, so that they are rounded half up.
FB_DEVICE FbRgb fb_half(const fb_axis& axis) {
  const fb_i32 half = 1 << axis.precision >> 1;
  return {half, half, half};
}

// A sum as a pixel of 4 bytes.
FB_DEVICE fb_u32 fb_rounded(const fb_axis& axis, FbRgb sum) {
  return fb_saturated(sum.red >> axis.precision, sum.green >> axis.precision,
                      sum.blue >> axis.precision);
}

// Adds to the sums of as many rows their inputs: pixels of 4 bytes, from a first row's first one
// on, rows `apart` from each other.
template <fb_u32 kRows>
FB_DEVICE void fb_weigh_rows(FbRgb (&sums)[kRows], const FbTaps& taps, const fb_u32* first,
                             fb_u32 apart) {
  taps.each_two([&](fb_u32 next, fb_u32 weights) {
    const fb_u32* one = first;
    fb_repeat<kRows>([&](fb_u32 k) {
      fb_add_two(sums[k], weights, one[0], one[next]);
      one += apart;
    });
    first += 2;
  });
}

// Output i of an axis of any kind; `pixel` makes its inputs, one after the other.
template <class Pixel>
FB_DEVICE FbRgb fb_weighed(const fb_axis& axis, const fb_u8* blob, fb_u32 i, Pixel pixel) {
  const bool is_weighted = axis.kind == FB_AXIS_WEIGHTED;
  const fb_i16* weights = reinterpret_cast<const fb_i16*>(blob + axis.weights) + i;
  // A copy is the sum of one input, without fractional bits.
  const fb_span span = is_weighted ? reinterpret_cast<const fb_span*>(blob + axis.table)[i]
                                   : fb_span{fb_copied_from(axis, blob, i), 1};
  FbRgb sum = is_weighted ? fb_half(axis) : FbRgb{};
  FB_LOOP
  for (fb_u32 tap = 0; tap < span.count; tap++, weights += axis.content_len) {
    const fb_i32 weight = is_weighted ? *weights : 1;
    const FbRgb input = pixel(span.start + tap);
    sum.red += weight * input.red;
    sum.green += weight * input.green;
    sum.blue += weight * input.blue;
  }
  return is_weighted ? fb_rgb(fb_rounded(axis, sum)) : sum;
}

#endif
