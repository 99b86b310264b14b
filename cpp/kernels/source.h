// The pixels that a pass reads, by column and row, whatever they are stored as.
//
// | functor      | CPU reference                    | rounding                                   |
// |--------------|----------------------------------|--------------------------------------------|
// | RgbSource    | codec's render/host.rs           | none                                       |
// | PlanarSource | codec's render/planar.rs         | none                                       |
// | GraySource   | libjpeg-turbo's jdcolext.c       | none                                       |
// | RgbxSource   | codec's render/mod.rs, `passes`  | none                                       |
// | YcbcrSource  | libjpeg-turbo's jdsample.c       | ordered: plus 1 or 2 of 4, 8 or 7 of 16    |
// |              | libjpeg-turbo's jdcolor.c        | half up at 16 fractional bits, clamped     |
#ifndef FOREBAY_KERNELS_SOURCE_H
#define FOREBAY_KERNELS_SOURCE_H

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

FB_DEVICE const fb_u8* fb_row(const fb_plane& plane, fb_i32 y) {
  return reinterpret_cast<const fb_u8*>(plane.address + static_cast<fb_u64>(y) * plane.pitch);
}

struct RgbSource {
  const fb_source& source;

  FB_DEVICE FbRgb at(fb_i32 x, fb_i32 y) const {
    const fb_u8* pixel = fb_row(source.planes[0], y) + 3ll * x;
    return {pixel[0], pixel[1], pixel[2]};
  }
};

struct PlanarSource {
  const fb_source& source;

  FB_DEVICE FbRgb at(fb_i32 x, fb_i32 y) const {
    return {fb_row(source.planes[0], y)[x], fb_row(source.planes[1], y)[x],
            fb_row(source.planes[2], y)[x]};
  }
};

struct GraySource {
  const fb_source& source;

  FB_DEVICE FbRgb at(fb_i32 x, fb_i32 y) const {
    const fb_i32 value = fb_row(source.planes[0], y)[x];
    return {value, value, value};
  }
};

struct RgbxSource {
  const fb_u32* pixels;
  fb_u32 width;

  FB_DEVICE FbRgb at(fb_i32 x, fb_i32 y) const {
    return fb_rgb(pixels[static_cast<fb_u64>(y) * width + static_cast<fb_u32>(x)]);
  }
};

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

struct YcbcrSource {
  const fb_source& source;

  FB_DEVICE FbRgb at(fb_i32 x, fb_i32 y) const {
    const fb_i32 luma = Component{source.planes[0]}.at(x, y);
    const fb_i32 cb = Component{source.planes[1]}.at(x, y) - 128;
    const fb_i32 cr = Component{source.planes[2]}.at(x, y) - 128;
    // FIX(1.40200), FIX(0.34414), FIX(0.71414), FIX(1.77200)
    constexpr fb_i32 kHalf = 1 << 15;
    return {fb_clamp_u8(luma + ((91881 * cr + kHalf) >> 16)),
            fb_clamp_u8(luma + ((-22554 * cb - 46802 * cr + kHalf) >> 16)),
            fb_clamp_u8(luma + ((116130 * cb + kHalf) >> 16))};
  }
};

// Calls `visit` with a function from column and row of the pass's input to its pixel. Which one is
// the same for all threads of a block.
template <class Source, class Visit>
FB_DEVICE FbRgb fb_visit(const fb_source& source, Source pixels, Visit visit) {
  return visit([&](fb_u32 column, fb_u32 row) {
    const fb_i32 x = static_cast<fb_i32>(source.transpose ? row : column);
    const fb_i32 y = static_cast<fb_i32>(source.transpose ? column : row);
    return pixels.at(source.origin_x + x, source.origin_y + y);
  });
}

template <class Visit>
FB_DEVICE FbRgb fb_with_pixels(const fb_source& source, const fb_u8* scratch, Visit visit) {
  const fb_plane& plane = source.planes[0];
  switch (source.kind) {
    case FB_SOURCE_RGB: return fb_visit(source, RgbSource{source}, visit);
    case FB_SOURCE_PLANAR: return fb_visit(source, PlanarSource{source}, visit);
    case FB_SOURCE_GRAY: return fb_visit(source, GraySource{source}, visit);
    case FB_SOURCE_YCBCR: return fb_visit(source, YcbcrSource{source}, visit);
    default: {
      const fb_u32* pixels = reinterpret_cast<const fb_u32*>(scratch + plane.address);
      return fb_visit(source, RgbxSource{pixels, plane.pitch / 4}, visit);
    }
  }
}

#endif
