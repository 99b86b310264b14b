// Pixels that are made from some pixels of another image:
// rust/codec/src/pixel/gather/scalar.rs, operation by operation.
//
// | function    | CPU reference | rounding                                                   |
// |-------------|---------------|------------------------------------------------------------|
// | fb_locate   | locate        | float32 each operation, the last a fused multiply-add      |
// | fb_nearest  | warp          | half to even                                               |
// | fb_bilinear | bilinear      | fused multiply-adds, then float32 each, half to even       |
// | fb_sharpen  | sharpen       | the blur exact; a fused multiply-add, fb_truncate          |
#ifndef FOREBAY_KERNELS_GATHER_H
#define FOREBAY_KERNELS_GATHER_H

#include "color.h"
#include "render.h"
#include "source.h"

struct FbPlace {
  float x;
  float y;
};

FB_DEVICE float fb_project(const float row[3], float x, float y) {
  return x * row[0] + y * row[1] + row[2];
}

// Where a pixel lies in the source: 0 is the first one's middle.
FB_DEVICE FbPlace fb_locate(const fb_gather& gather, fb_u32 column, fb_u32 row) {
  const float x = static_cast<float>(column) + gather.origin[0];
  const float y = static_cast<float>(row) + gather.origin[1];
  FbPlace grid = {fb_project(gather.rows[0], x, y), fb_project(gather.rows[1], x, y)};
  if (gather.projects) {
    const float divisor = x * gather.projection[0] + y * gather.projection[1] + 1.0f;
    grid = {grid.x / divisor - 1.0f, grid.y / divisor - 1.0f};
  }
  return {fmaf(grid.x + 1.0f, static_cast<float>(gather.width) / 2.0f, -0.5f),
          fmaf(grid.y + 1.0f, static_cast<float>(gather.height) / 2.0f, -0.5f)};
}

// False for what is no number, too.
FB_DEVICE bool fb_is_inside(const fb_gather& gather, float x, float y) {
  return x >= 0.0f && y >= 0.0f && x < static_cast<float>(gather.width) &&
         y < static_cast<float>(gather.height);
}

template <class Pixel>
FB_DEVICE FbRgb fb_nearest(const fb_gather& gather, FbPlace place, Pixel pixel) {
  const float x = rintf(place.x);
  const float y = rintf(place.y);
  return fb_is_inside(gather, x, y) ? pixel(static_cast<fb_u32>(x), static_cast<fb_u32>(y))
                                    : fb_rgb(gather.fill);
}

template <class Pixel>
FB_DEVICE FbRgb fb_bilinear(const fb_gather& gather, FbPlace place, Pixel pixel) {
  const float left = floorf(place.x);
  const float top = floorf(place.y);
  const float across = place.x - left;
  const float down = place.y - top;
  if (!(across >= 0.0f && down >= 0.0f)) {
    return {0, 0, 0};  // no numbers: beyond the horizon of a tilt
  }
  float red = 0.0f;
  float green = 0.0f;
  float blue = 0.0f;
  float inside = 0.0f;
  for (fb_u32 tap = 0; tap < 4; tap++) {
    const float x = tap & 1 ? left + 1.0f : left;
    const float y = tap & 2 ? top + 1.0f : top;
    if (fb_is_inside(gather, x, y)) {
      const float weight = (tap & 1 ? across : 1.0f - across) * (tap & 2 ? down : 1.0f - down);
      const FbRgb source = pixel(static_cast<fb_u32>(x), static_cast<fb_u32>(y));
      red = fmaf(fb_float(source.red), weight, red);
      green = fmaf(fb_float(source.green), weight, green);
      blue = fmaf(fb_float(source.blue), weight, blue);
      inside = inside + weight;
    }
  }
  const FbRgb fill = fb_rgb(gather.fill);
  const auto filled = [&](float sum, fb_i32 value) {
    const float base = fb_float(value);
    const float mixed = gather.fills ? (sum - base) * inside + base : sum;
    return fb_truncate(rintf(mixed));
  };
  return {filled(red, fill.red), filled(green, fill.green), filled(blue, fill.blue)};
}

template <class Pixel>
FB_DEVICE FbRgb fb_sharpen(const fb_gather& gather, fb_u32 column, fb_u32 row, Pixel pixel) {
  const FbRgb middle = pixel(column, row);
  if (column == 0 || row == 0 || column + 1 == gather.width || row + 1 == gather.height) {
    return middle;
  }
  FbRgb sum = {4 * middle.red, 4 * middle.green, 4 * middle.blue};
  for (fb_u32 tap = 0; tap < 9; tap++) {
    const FbRgb near = pixel(column - 1 + tap % 3, row - 1 + tap / 3);
    sum = {sum.red + near.red, sum.green + near.green, sum.blue + near.blue};
  }
  // Eight pixels count once, the middle five times.
  constexpr fb_i32 kWeights = 13;
  const auto sharpened = [&](fb_i32 sum_of, fb_i32 value) {
    const float blurred = fb_float((2 * sum_of + kWeights) / (2 * kWeights));
    return fb_truncate(fmaf(blurred - fb_float(value), gather.blur, fb_float(value)));
  };
  return {sharpened(sum.red, middle.red), sharpened(sum.green, middle.green),
          sharpened(sum.blue, middle.blue)};
}

// The pass's input at a column and a row; `pixel` are those of its source.
template <class Pixel>
FB_DEVICE FbRgb fb_gathered(const fb_gather& gather, fb_u32 column, fb_u32 row, Pixel pixel) {
  if (gather.kind == FB_GATHER_SHARPEN) {
    return fb_sharpen(gather, column, row, pixel);
  }
  const FbPlace place = fb_locate(gather, column, row);
  return gather.kind == FB_GATHER_BILINEAR ? fb_bilinear(gather, place, pixel)
                                           : fb_nearest(gather, place, pixel);
}

// The input of a pass whose pixels are gathered, as FbInput.
struct FbGathered {
  const fb_gather& gather;
  const fb_u32* pixels;

  FB_DEVICE FbRgb operator()(fb_u32 column, fb_u32 row) const {
    return fb_gathered(gather, column, row, [&](fb_u32 x, fb_u32 y) {
      return fb_rgb(pixels[static_cast<fb_u64>(y) * gather.width + x]);
    });
  }

  template <class Visit>
  FB_DEVICE void with_lines(Visit visit) const {
    visit([&](fb_u32 row) { return FbLineInTurn<FbGathered>{*this, row}; });
  }
};

// Calls `visit` with the pass's input.
template <class Visit>
FB_DEVICE void fb_with_input(const fb_job& job, const fb_u8* blob, const fb_u8* scratch,
                             Visit visit) {
  if (job.gather == kFbNoSum) {
    fb_with_pixels(job.source, scratch, visit);
    return;
  }
  const fb_gather& gather = *reinterpret_cast<const fb_gather*>(blob + job.gather);
  const fb_u64 pixels = job.source.planes[0].address;
  visit(FbGathered{gather, reinterpret_cast<const fb_u32*>(scratch + pixels)});
}

#endif
