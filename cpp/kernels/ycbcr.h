// The pixels of a JPEG's planes.
//
// | struct       | CPU reference                    | rounding                                   |
// |--------------|----------------------------------|--------------------------------------------|
// | Component    | libjpeg-turbo's jdsample.c       | ordered: plus 1 or 2 of 4, 8 or 7 of 16    |
// | FbSampleRows | the same                         | the same                                   |
// | YcbcrSource  | libjpeg-turbo's jdcolor.c        | half up at 16 fractional bits, clamped     |
// | FbYcbcrLine  | the same                         | the same                                   |
#ifndef FOREBAY_KERNELS_YCBCR_H
#define FOREBAY_KERNELS_YCBCR_H

#include "pixel.h"

// Halves of words are values of 16 bits here.
constexpr fb_u32 kFbLowerBytes = 0x00ff00ff;

// A run at twice the resolution of samples 0 and 2 in `even`, 1 and 3 in `odd`, the one before and
// the one behind: three parts of the nearer one and one of the further, rounded by what is added.
FB_DEVICE void fb_double(fb_u32 even, fb_u32 odd, fb_u32 before, fb_u32 behind, fb_u32 even_half,
                         fb_u32 odd_half, fb_u32 bits, fb_i32 (&values)[kFbRun]) {
  const fb_u32 lefts = before | odd << 16;
  const fb_u32 rights = even >> 16 | behind << 16;
  const fb_u32 sums[kFbRun / 2] = {
      3 * even + lefts + 0x00010001 * even_half, 3 * even + odd + 0x00010001 * odd_half,
      3 * odd + even + 0x00010001 * even_half, 3 * odd + rights + 0x00010001 * odd_half};
  fb_repeat<kFbRun / 2>([&](fb_u32 i) {
    const fb_u32 pair = sums[i] >> bits & kFbLowerBytes;
    values[i] = static_cast<fb_i32>(pair & 0xffff);
    values[i + kFbRun / 2] = static_cast<fb_i32>(pair >> 16);
  });
}

// A component of a JPEG at full resolution, as libjpeg-turbo's upsamplers make it. At the ends of
// rows they copy the last sample, and above and below the image they read the nearest row twice:
// both are what the filters give for samples clamped to those that exist.
struct Component {
  const fb_plane& plane;

  FB_DEVICE fb_i32 sample(fb_i32 x, fb_i32 y) const {
    return fb_row(plane,
                  fb_clamp(y, plane.top, plane.bottom))[fb_clamp(x, plane.left, plane.right)];
  }

  // h2v1_fancy_upsample
  FB_DEVICE fb_i32 h2v1(fb_i32 x, fb_i32 y) const {
    const fb_i32 odd = x & 1;
    const fb_i32 near = x >> 1;
    return (3 * sample(near, y) + sample(near + 2 * odd - 1, y) + 1 + odd) >> 2;
  }

  // h1v2_fancy_upsample
  FB_DEVICE fb_i32 h1v2(fb_i32 x, fb_i32 y) const {
    const fb_i32 odd = y & 1;
    return (nearer_row_thrice(x, y) + 1 + odd) >> 2;
  }

  // h2v2_fancy_upsample
  FB_DEVICE fb_i32 h2v2(fb_i32 x, fb_i32 y) const {
    const fb_i32 odd = x & 1;
    const fb_i32 near = x >> 1;
    const fb_i32 sum = 3 * nearer_row_thrice(near, y) + nearer_row_thrice(near + 2 * odd - 1, y);
    return (sum + 8 - odd) >> 4;
  }

  // Three times the nearer row of samples, and the further one, of row y of pixels.
  FB_DEVICE fb_i32 nearer_row_thrice(fb_i32 x, fb_i32 y) const {
    const fb_i32 near = y >> 1;
    return 3 * sample(x, near) + sample(x, near + 2 * (y & 1) - 1);
  }

  // Whether words can be read from multiples of 4 on, rows beginning at one of kFbRun. See Plane in
  // pack/source.rs.
  FB_DEVICE bool has_words() const {
    return (plane.address | plane.pitch) % sizeof(fb_u32) == 0 &&
           static_cast<fb_u32>(plane.left) % kFbRun == 0;
  }

  FB_DEVICE fb_i32 at(fb_i32 x, fb_i32 y) const {
    switch (plane.upsampling) {
      case FB_UPSAMPLING_NONE: return sample(x, y);
      case FB_UPSAMPLING_H2V1: return h2v1(x, y);
      case FB_UPSAMPLING_H1V2: return h1v2(x, y);
      case FB_UPSAMPLING_H2V2: return h2v2(x, y);
      // int_upsample
      default:
        return sample(x / static_cast<fb_i32>(plane.expand_x),
                      y / static_cast<fb_i32>(plane.expand_y));
    }
  }
};

// A row of samples that can be read in words.
struct FbSamples {
  const fb_u8* samples;
  fb_i32 left;
  fb_i32 right;

  FB_DEVICE FbSamples(const fb_plane& plane, fb_i32 y)
      : samples(fb_row(plane, fb_clamp(y, plane.top, plane.bottom))),
        left(plane.left),
        right(plane.right) {}

  // Samples x to x + 3, where x is a multiple of 4.
  FB_DEVICE fb_u32 word(fb_i32 x) const {
    const fb_u32 word = *reinterpret_cast<const fb_u32*>(samples + x);
    const fb_i32 behind = right - x;
    const fb_u32 digits = behind >= 3 ? 0x3210 : behind == 2 ? 0x2210 : behind == 1 ? 0x1110 : 0;
    return fb_pick(word, word, digits);
  }

  FB_DEVICE fb_u32 operator[](fb_i32 x) const { return samples[fb_clamp(x, left, right)]; }

  // A run of pixels that are samples; those behind the last sample are any.
  FB_DEVICE void run(fb_i32 x, fb_i32 (&values)[kFbRun]) const {
    const fb_u32* from = reinterpret_cast<const fb_u32*>(samples + x);
    const fb_u32 words[2] = {from[0], x + 4 <= right ? from[1] : 0};
    fb_repeat<kFbRun>(
        [&](fb_u32 i) { values[i] = static_cast<fb_i32>(words[i / 4] >> 8 * (i % 4) & 255); });
  }
};

// Rows of a component that is upsampled as `kUpsampling` says, for one row of pixels.
template <fb_u32 kUpsampling>
struct FbSampleRows {
  FbSamples near;
  FbSamples far;  // of H2V2

  FB_DEVICE FbSampleRows(const fb_plane& plane, fb_i32 y)
      : near(plane, kUpsampling == FB_UPSAMPLING_H2V2 ? y >> 1 : y),
        far(plane, (y >> 1) + 2 * (y & 1) - 1) {}

  // A run of pixels.
  FB_DEVICE void run(fb_i32 x, fb_i32 (&values)[kFbRun]) const {
    const fb_i32 half = x >> 1;
    if constexpr (kUpsampling == FB_UPSAMPLING_NONE) {
      near.run(x, values);
    } else if constexpr (kUpsampling == FB_UPSAMPLING_H2V1) {
      const fb_u32 samples = near.word(half);
      fb_double(samples & kFbLowerBytes, samples >> 8 & kFbLowerBytes, near[half - 1],
                near[half + 4], 1, 2, 2, values);
    } else {
      const fb_u32 nears = near.word(half);
      const fb_u32 fars = far.word(half);
      fb_double(3 * (nears & kFbLowerBytes) + (fars & kFbLowerBytes),
                3 * (nears >> 8 & kFbLowerBytes) + (fars >> 8 & kFbLowerBytes),
                3 * near[half - 1] + far[half - 1], 3 * near[half + 4] + far[half + 4], 8, 7, 4,
                values);
    }
  }
};

struct YcbcrSource {
  const fb_source& source;

  // A pixel of 4 bytes.
  FB_DEVICE static fb_u32 convert(fb_i32 luma, fb_i32 blue, fb_i32 red) {
    const fb_i32 cb = blue - 128;
    const fb_i32 cr = red - 128;
    // FIX(1.40200), FIX(0.34414), FIX(0.71414), FIX(1.77200)
    constexpr fb_i32 kHalf = 1 << 15;
    return fb_saturated(luma + ((91881 * cr + kHalf) >> 16),
                        luma + ((-22554 * cb - 46802 * cr + kHalf) >> 16),
                        luma + ((116130 * cb + kHalf) >> 16));
  }

  FB_DEVICE FbRgb at(fb_i32 x, fb_i32 y) const {
    return fb_rgb(convert(Component{source.planes[0]}.at(x, y),
                          Component{source.planes[1]}.at(x, y),
                          Component{source.planes[2]}.at(x, y)));
  }
};

// A row of a JPEG of planes of words, whole luma, and chroma that is upsampled as `kChroma` says.
template <fb_u32 kChroma>
struct FbYcbcrLine {
  FbSampleRows<FB_UPSAMPLING_NONE> luma;
  FbSampleRows<kChroma> blue;
  FbSampleRows<kChroma> red;
  fb_i32 origin;

  FB_DEVICE FbYcbcrLine(const fb_source& source, fb_u32 row)
      : luma(source.planes[0], source.origin_y + static_cast<fb_i32>(row)),
        blue(source.planes[1], source.origin_y + static_cast<fb_i32>(row)),
        red(source.planes[2], source.origin_y + static_cast<fb_i32>(row)),
        origin(source.origin_x) {}

  // As FbLineInTurn, of which one pixel at least must be needed. Neighbours share samples.
  FB_DEVICE void run(fb_u32 column, fb_u32, fb_u32, fb_u32 (&run)[kFbRun]) const {
    const fb_i32 x = origin + static_cast<fb_i32>(column);
    fb_i32 lumas[kFbRun];
    fb_i32 blues[kFbRun];
    fb_i32 reds[kFbRun];
    luma.run(x, lumas);
    blue.run(x, blues);
    red.run(x, reds);
    fb_repeat<kFbRun>(
        [&](fb_u32 i) { run[i] = YcbcrSource::convert(lumas[i], blues[i], reds[i]); });
  }
};

#endif
