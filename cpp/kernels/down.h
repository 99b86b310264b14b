// The last kernel of a pass.
#ifndef FOREBAY_KERNELS_DOWN_H
#define FOREBAY_KERNELS_DOWN_H

#include "color.h"
#include "gather.h"
#include "weigh.h"

// Pixels of a row that a thread of fb_resample_down makes: kFbWarp apart, so that those of a warp's
// threads are neighbours.
constexpr fb_u32 kFbOutputs = 4;
constexpr fb_u32 kFbSegment = kFbOutputs * kFbWarp;

// Columns of the content, counted from its first one. Positions before it wrap around to beyond it.
struct FbColumns {
  fb_u32 first;
  fb_u32 length;

  FB_DEVICE fb_u32 operator[](fb_u32 i) const { return first + i * kFbWarp; }
  FB_DEVICE bool has(fb_u32 i) const { return (*this)[i] < length; }
  // That column, or for one outside another of the content.
  FB_DEVICE fb_u32 inside(fb_u32 i) const { return has(i) ? (*this)[i] : length - 1; }
};

// Whether rows of a pass's input lie in the scratch as pixels of 4 bytes, and are not gathered.
FB_DEVICE bool fb_is_stored(const fb_job& job) {
  return job.source.kind == FB_SOURCE_RGBX && job.gather == kFbNoSum;
}

// The resampled pixels at some columns and a row of the content, from rows of pixels of 4 bytes:
// those that fb_resample_across has left, or the input's.
FB_DEVICE void fb_down_from_stored(const fb_job& job, const fb_u8* blob, const fb_u8* scratch,
                                   FbColumns columns, fb_u32 row, FbRgb (&pixels)[kFbOutputs]) {
  const bool is_across = job.x.kind == FB_AXIS_WEIGHTED;
  const fb_plane& plane = job.source.planes[0];
  const fb_u32* stored =
      reinterpret_cast<const fb_u32*>(scratch + (is_across ? job.across : plane.address));
  const fb_u32 pitch = is_across ? job.x.content_len : plane.pitch / 4;
  const fb_u32 top = is_across ? 0 - job.across_top : static_cast<fb_u32>(job.source.origin_y);
  const fb_u32 left = is_across ? 0 : static_cast<fb_u32>(job.source.origin_x);
  fb_u32 places[kFbOutputs];
  fb_repeat<kFbOutputs>([&](fb_u32 i) {
    const fb_u32 column = columns.inside(i);
    places[i] = left + (is_across ? column : fb_copied_from(job.x, blob, column));
  });
  const auto line = [&](fb_u32 from) { return stored + static_cast<fb_u64>(top + from) * pitch; };
  if (job.y.kind != FB_AXIS_WEIGHTED) {
    const fb_u32* copied = line(fb_copied_from(job.y, blob, row));
    fb_repeat<kFbOutputs>([&](fb_u32 i) { pixels[i] = fb_rgb(copied[places[i]]); });
    return;
  }
  FbRgb sums[kFbOutputs];
  fb_repeat<kFbOutputs>([&](fb_u32 i) { sums[i] = fb_half(job.y); });
  const FbTaps taps(job.y, blob, row, 0, kFbAll);
  const fb_u32* one = line(taps.start);
  taps.each_two([&](fb_u32 next, fb_u32 weights) {
    const fb_u32* other = one + (next > 0 ? pitch : 0);
    fb_repeat<kFbOutputs>(
        [&](fb_u32 i) { fb_add_two(sums[i], weights, one[places[i]], other[places[i]]); });
    one += 2ull * pitch;
  });
  fb_repeat<kFbOutputs>([&](fb_u32 i) { pixels[i] = fb_rgb(fb_rounded(job.y, sums[i])); });
}

// As fb_down_from_stored, from pixels that are made one by one.
template <class Input>
FB_DEVICE void fb_down_from_any(const fb_job& job, const fb_u8* blob, const Input& input,
                                FbColumns columns, fb_u32 row, FbRgb (&pixels)[kFbOutputs]) {
  FB_LOOP
  for (fb_u32 turn = 0; turn < kFbOutputs; turn++) {
    const fb_u32 column = fb_copied_from(job.x, blob, columns.inside(turn));
    const FbRgb made =
        fb_weighed(job.y, blob, row, [&](fb_u32 from) { return input(column, from); });
    fb_repeat<kFbOutputs>([&](fb_u32 i) { pixels[i] = i == turn ? made : pixels[i]; });
  }
}

// The output's pixels at some columns and a row, of 4 bytes.
FB_DEVICE void fb_output_pixels(const fb_job& job, const fb_u8* blob, const fb_u8* scratch,
                                fb_u32 column, fb_u32 row, fb_u32 (&rgbx)[kFbOutputs]) {
  const FbColumns columns{column - job.x.content_start, job.x.content_len};
  const fb_u32 content_row = row - job.y.content_start;
  FbRgb pixels[kFbOutputs] = {};
  const bool is_content = content_row < job.y.content_len && columns.length > 0;
  if (is_content) {
    if (job.x.kind == FB_AXIS_WEIGHTED || fb_is_stored(job)) {
      fb_down_from_stored(job, blob, scratch, columns, content_row, pixels);
    } else {
      fb_with_input(job, blob, scratch, [&](const auto& input) {
        fb_down_from_any(job, blob, input, columns, content_row, pixels);
      });
    }
    fb_color(job, blob, scratch, pixels);
  }
  fb_repeat<kFbOutputs>(
      [&](fb_u32 i) { rgbx[i] = is_content && columns.has(i) ? fb_rgbx(pixels[i]) : job.fill; });
}

// Pixels of an output that follow each other in its memory, kFbWarp apart, up to a row's end.
struct FbIndices {
  fb_u32 first;
  fb_u32 end;

  FB_DEVICE fb_u32 operator[](fb_u32 i) const { return first + i * kFbWarp; }
  FB_DEVICE bool has(fb_u32 i) const { return (*this)[i] < end; }
};

template <class Element>
FB_DEVICE void fb_store_elements(const fb_output& output, const fb_u8* blob, FbIndices indices,
                                 fb_u32 pixels, const fb_u32 (&rgbx)[kFbOutputs]) {
  Element* slot = reinterpret_cast<Element*>(output.address);
  const Element* table = reinterpret_cast<const Element*>(blob + output.table);
  if (output.channels == 3 && output.layout == FB_LAYOUT_CHANNELS_LAST) {
    fb_repeat<kFbOutputs>(
        [&](fb_u32 i) { fb_store_interleaved(slot, table, indices[i], indices.end, rgbx[i]); });
    return;
  }
  for (fb_u32 channel = 0; channel < output.channels; channel++, slot += pixels, table += 256) {
    fb_repeat<kFbOutputs>([&](fb_u32 i) {
      if (indices.has(i)) {
        slot[indices[i]] = table[rgbx[i] >> 8 * channel & 255];
      }
    });
  }
}

FB_DEVICE void fb_store(const fb_output& output, const fb_u8* blob, fb_u8* scratch,
                        FbIndices indices, fb_u32 pixels, const fb_u32 (&rgbx)[kFbOutputs]) {
  switch (output.element_bytes) {
    case 1: fb_store_elements<fb_u8>(output, blob, indices, pixels, rgbx); break;
    case 2: fb_store_elements<fb_u16>(output, blob, indices, pixels, rgbx); break;
    case 4: fb_store_elements<fb_u32>(output, blob, indices, pixels, rgbx); break;
    default:
      fb_repeat<kFbOutputs>([&](fb_u32 i) {
        if (indices.has(i)) {
          reinterpret_cast<fb_u32*>(scratch + output.address)[indices[i]] = rgbx[i];
        }
      });
  }
}

// A warp makes a segment of a row of the whole output, fill included. Threads beyond the row's end
// go along: sums and interleaved stores take whole warps. See down_tiles in pack/batch.rs.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_resample_down(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_job& job = reinterpret_cast<const fb_job*>(blob + jobs)[blockIdx.y];
  const fb_u32 width = job.x.out_len;
  const fb_u32 segments = (width + kFbSegment - 1) / kFbSegment;
  const fb_u32 segment = blockIdx.x * (kFbBlock / kFbWarp) + threadIdx.x / kFbWarp;
  const fb_u32 row = segment / segments;
  if (row >= job.y.out_len) {
    return;
  }
  const fb_u32 column = segment % segments * kFbSegment + threadIdx.x % kFbWarp;
  const FbIndices indices{row * width + column, (row + 1) * width};
  fb_u32 rgbx[kFbOutputs];
  fb_output_pixels(job, blob, scratch, column, row, rgbx);
  if (job.sum != kFbNoSum) {
    fb_u32 gray = 0;
    fb_repeat<kFbOutputs>([&](fb_u32 i) {
      const FbRgb pixel = fb_rgb(rgbx[i]);
      const float value = job.output.channels == 1 ? fb_float(pixel.red) : fb_gray(pixel);
      gray += indices.has(i) ? static_cast<fb_u32>(value) : 0;
    });
    fb_add_sum(reinterpret_cast<fb_u64*>(scratch + job.sum), gray);
  }
  if (job.histogram != kFbNoSum) {
    fb_u32* counts = reinterpret_cast<fb_u32*>(scratch + job.histogram);
    for (fb_u32 channel = 0; channel < 3; channel++, counts += 256) {
      fb_repeat<kFbOutputs>([&](fb_u32 i) {
        if (indices.has(i)) {
          fb_count(counts + (rgbx[i] >> 8 * channel & 255));
        }
      });
    }
  }
  fb_store(job.output, blob, scratch, indices, job.x.out_len * job.y.out_len, rgbx);
}

#endif
