// Point-wise colour on 8-bit RGB: rust/codec/src/pixel/color/scalar.rs, operation by operation.
//
// | function            | CPU reference                | rounding                               |
// |---------------------|------------------------------|----------------------------------------|
// | fb_gray             | gray                         | fused where Rust says mul_add, down    |
// | fb_truncate         | truncate                     | clamped, towards zero                  |
// | fb_blend            | saturate; mod.rs, Contrast   | one fused multiply-add, fb_truncate    |
// | fb_brighten         | mod.rs, Brightness           | float32, fb_truncate                   |
// | fb_turn_hue         | turn_hue                     | float32 each operation, fb_truncate    |
// | fb_to_gray          | to_gray                      | as fb_gray                             |
// | fb_solarize, fb_posterize, fb_permute | mod.rs, Program::new | none                         |
// | fb_color            | mod.rs, Program::apply       | 8 bits after each operation            |
//
// Compile with --fmad=false (-ffp-contract=off): no contraction but fmaf's.
#ifndef FOREBAY_KERNELS_COLOR_H
#define FOREBAY_KERNELS_COLOR_H

#include "pixel.h"

// Red, green and blue, or hue, saturation and value, from 0 to 1.
struct FbColor {
  float x;
  float y;
  float z;
};

FB_DEVICE float fb_float(fb_i32 value) { return static_cast<float>(value); }

FB_DEVICE fb_i32 fb_truncate(float value) {
  return static_cast<fb_i32>(fminf(fmaxf(value, 0.0f), 255.0f));
}

FB_DEVICE float fb_gray(FbRgb pixel) {
  const float red = fb_float(pixel.red) * 0.2989f;
  return floorf(fmaf(fb_float(pixel.blue), 0.114f, fmaf(fb_float(pixel.green), 0.587f, red)));
}

// Each channel, value * factor + base * complement.
FB_DEVICE FbRgb fb_blend(FbRgb pixel, float base, const fb_color_op& op) {
  const auto blend = [&](fb_i32 value) {
    return fb_truncate(fmaf(base, op.complement, fb_float(value) * op.factor));
  };
  return {blend(pixel.red), blend(pixel.green), blend(pixel.blue)};
}

FB_DEVICE FbRgb fb_brighten(FbRgb pixel, float factor) {
  return {fb_truncate(fb_float(pixel.red) * factor), fb_truncate(fb_float(pixel.green) * factor),
          fb_truncate(fb_float(pixel.blue) * factor)};
}

FB_DEVICE float fb_fraction(float value) { return value - floorf(value); }

FB_DEVICE float fb_clamp_unit(float value) { return fminf(fmaxf(value, 0.0f), 1.0f); }

FB_DEVICE FbColor fb_hsv_from_rgb(FbColor rgb) {
  const auto [r, g, b] = rgb;
  const float most = fmaxf(fmaxf(r, g), b);
  const float least = fminf(fminf(r, g), b);
  const float range = most - least;
  const bool is_gray = most == least;
  const float s = range / (is_gray ? 1.0f : most);
  const float divisor = is_gray ? 1.0f : range;
  const float rc = (most - r) / divisor;
  const float gc = (most - g) / divisor;
  const float bc = (most - b) / divisor;
  const float h = most == r ? bc - gc : most == g ? rc + 2.0f - bc : gc + 4.0f - rc;
  return {fb_fraction(h * (1.0f / 6.0f) + 1.0f), s, most};
}

FB_DEVICE FbColor fb_rgb_from_hsv(FbColor hsv) {
  const auto [h, s, v] = hsv;
  const float h6 = h * 6.0f;
  const float sector = floorf(h6);
  const float f = h6 - sector;
  const float sxf = s * f;
  const float q = fb_clamp_unit((1.0f - sxf) * v);
  const float t = fb_clamp_unit((sxf + (1.0f - s)) * v);
  const float p = fb_clamp_unit((1.0f - s) * v);
  // `sector` is a whole number from 0 to 6.
  switch (static_cast<fb_i32>(sector) % 6) {
    case 0: return {v, t, p};
    case 1: return {q, v, p};
    case 2: return {p, v, t};
    case 3: return {p, q, v};
    case 4: return {t, p, v};
    default: return {v, p, q};
  }
}

FB_DEVICE FbRgb fb_turn_hue(FbRgb pixel, float turns) {
  constexpr float kUnit = 1.0f / 255.0f;
  FbColor hsv = fb_hsv_from_rgb(
      {fb_float(pixel.red) * kUnit, fb_float(pixel.green) * kUnit, fb_float(pixel.blue) * kUnit});
  hsv.x = fb_fraction(hsv.x + turns);
  const FbColor rgb = fb_rgb_from_hsv(hsv);
  return {fb_truncate(rgb.x * 255.999f), fb_truncate(rgb.y * 255.999f),
          fb_truncate(rgb.z * 255.999f)};
}

FB_DEVICE FbRgb fb_to_gray(FbRgb pixel) {
  const fb_i32 gray = fb_truncate(fb_gray(pixel));
  return {gray, gray, gray};
}

FB_DEVICE FbRgb fb_solarize(FbRgb pixel, float from) {
  const auto solarize = [&](fb_i32 value) { return fb_float(value) >= from ? 255 - value : value; };
  return {solarize(pixel.red), solarize(pixel.green), solarize(pixel.blue)};
}

FB_DEVICE FbRgb fb_posterize(FbRgb pixel, fb_i32 bits) {
  const fb_i32 mask = 255 << (8 - bits) & 255;
  return {pixel.red & mask, pixel.green & mask, pixel.blue & mask};
}

FB_DEVICE FbRgb fb_permute(FbRgb pixel, fb_u32 channels) {
  const fb_u32 rgbx = fb_rgbx(pixel);
  const auto take = [&](fb_u32 place) {
    return static_cast<fb_i32>(rgbx >> 8 * (channels >> 2 * place & 3) & 255);
  };
  return {take(0), take(1), take(2)};
}

FB_DEVICE float fb_mean(const fb_job& job, const fb_u8* scratch) {
  if (job.mean_sum == kFbNoSum) {
    return 0.0f;
  }
  const fb_u64 sum = *reinterpret_cast<const fb_u64*>(scratch + job.mean_sum);
  return static_cast<float>(sum) / static_cast<float>(job.mean_pixels);
}

FB_DEVICE FbRgb fb_look_up(const fb_job& job, const fb_u8* scratch, FbRgb pixel) {
  if (job.tables == kFbNoSum) {
    return pixel;
  }
  const fb_u8* tables = scratch + job.tables;
  return {tables[pixel.red], tables[256 + pixel.green], tables[512 + pixel.blue]};
}

// Runs the job's colour program on some pixels.
template <fb_u32 kCount>
FB_DEVICE void fb_color(const fb_job& job, const fb_u8* blob, const fb_u8* scratch,
                        FbRgb (&pixels)[kCount]) {
  const fb_color_op* ops = reinterpret_cast<const fb_color_op*>(blob + job.color);
  const auto each = [&](auto change) {
    fb_repeat<kCount>([&](fb_u32 i) { pixels[i] = change(pixels[i]); });
  };
  for (fb_u32 i = 0; i < job.color_ops; i++) {
    const fb_color_op op = ops[i];
    switch (op.kind) {
      case FB_COLOR_BRIGHTNESS:
        each([&](FbRgb pixel) { return fb_brighten(pixel, op.factor); });
        break;
      case FB_COLOR_CONTRAST: {
        const float mean = fb_mean(job, scratch);
        each([&](FbRgb pixel) { return fb_blend(pixel, mean, op); });
        break;
      }
      case FB_COLOR_SATURATION:
        each([&](FbRgb pixel) { return fb_blend(pixel, fb_gray(pixel), op); });
        break;
      case FB_COLOR_HUE: each([&](FbRgb pixel) { return fb_turn_hue(pixel, op.factor); }); break;
      case FB_COLOR_GRAYSCALE: each(fb_to_gray); break;
      case FB_COLOR_SOLARIZE:
        each([&](FbRgb pixel) { return fb_solarize(pixel, op.factor); });
        break;
      case FB_COLOR_POSTERIZE:
        each([&](FbRgb pixel) { return fb_posterize(pixel, static_cast<fb_i32>(op.factor)); });
        break;
      case FB_COLOR_PERMUTE:
        each([&](FbRgb pixel) { return fb_permute(pixel, static_cast<fb_u32>(op.factor)); });
        break;
      default: each([&](FbRgb pixel) { return fb_look_up(job, scratch, pixel); });
    }
  }
}

#endif
