// The pixels that a pass reads, by column and row, whatever they are stored as.
//
// | functor      | CPU reference                    | rounding                                   |
// |--------------|----------------------------------|--------------------------------------------|
// | RgbSource    | codec's render/host.rs           | none                                       |
// | PlanarSource | codec's render/planar.rs         | none                                       |
// | GraySource   | libjpeg-turbo's jdcolext.c       | none                                       |
// | RgbxSource   | codec's render/mod.rs, `passes`  | none                                       |
// | YcbcrSource  | here ycbcr.h                     | as there                                   |
#ifndef FOREBAY_KERNELS_SOURCE_H
#define FOREBAY_KERNELS_SOURCE_H

#include "pixel.h"
#include "ycbcr.h"

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

// A column of [begin, end): the nearest one.
FB_DEVICE fb_u32 fb_nearest_column(fb_u32 column, fb_u32 begin, fb_u32 end) {
  // Columns before the first one may have wrapped.
  const fb_i32 nearest = fb_clamp(static_cast<fb_i32>(column), static_cast<fb_i32>(begin),
                                  static_cast<fb_i32>(end) - 1);
  return static_cast<fb_u32>(nearest);
}

// A row of a pass's input, of which pixels are made one after the other, to keep code short where
// they take much.
template <class Input>
struct FbLineInTurn {
  const Input& input;
  fb_u32 row;

  // Pixels `column` and on, which lies at a multiple of kFbRun in planes that are not transposed;
  // those outside columns [begin, end) are any.
  FB_DEVICE void run(fb_u32 column, fb_u32 begin, fb_u32 end, fb_u32 (&run)[kFbRun]) const {
    FB_LOOP
    for (fb_u32 turn = 0; turn < kFbRun; turn++) {
      const fb_u32 made = fb_rgbx(input(fb_nearest_column(column + turn, begin, end), row));
      fb_repeat<kFbRun>([&](fb_u32 i) { run[i] = i == turn ? made : run[i]; });
    }
  }
};

// A row whose pixels are made at once, each by itself.
template <class Input>
struct FbLineAtOnce {
  const Input& input;
  fb_u32 row;

  // As FbLineInTurn.
  FB_DEVICE void run(fb_u32 column, fb_u32 begin, fb_u32 end, fb_u32 (&run)[kFbRun]) const {
    fb_repeat<kFbRun>(
        [&](fb_u32 i) { run[i] = fb_rgbx(input(fb_nearest_column(column + i, begin, end), row)); });
  }
};

// The input of a pass, by column and row.
template <class Source>
struct FbInput {
  const fb_source& source;
  Source pixels;

  FB_DEVICE FbRgb operator()(fb_u32 column, fb_u32 row) const {
    const fb_i32 x = static_cast<fb_i32>(source.transpose ? row : column);
    const fb_i32 y = static_cast<fb_i32>(source.transpose ? column : row);
    return pixels.at(source.origin_x + x, source.origin_y + y);
  }

  // Calls `visit` with a function from a row to its pixels, see FbLineInTurn.
  template <class Visit>
  FB_DEVICE void with_lines(Visit visit) const {
    visit([&](fb_u32 row) { return FbLineAtOnce<FbInput>{*this, row}; });
  }
};

template <>
template <class Visit>
FB_DEVICE void FbInput<YcbcrSource>::with_lines(Visit visit) const {
  const auto& [luma, blue, red] = source.planes;
  const bool has_words =
      Component{luma}.has_words() && Component{blue}.has_words() && Component{red}.has_words();
  const bool is_plain = has_words && source.transpose == 0 &&
                        luma.upsampling == FB_UPSAMPLING_NONE && blue.upsampling == red.upsampling;
  switch (is_plain ? blue.upsampling : FB_UPSAMPLING_REPLICATE) {
    case FB_UPSAMPLING_NONE:
      visit([&](fb_u32 row) { return FbYcbcrLine<FB_UPSAMPLING_NONE>(source, row); });
      break;
    case FB_UPSAMPLING_H2V1:
      visit([&](fb_u32 row) { return FbYcbcrLine<FB_UPSAMPLING_H2V1>(source, row); });
      break;
    case FB_UPSAMPLING_H2V2:
      visit([&](fb_u32 row) { return FbYcbcrLine<FB_UPSAMPLING_H2V2>(source, row); });
      break;
    default: visit([&](fb_u32 row) { return FbLineInTurn<FbInput>{*this, row}; });
  }
}

// Calls `visit` with the pass's input. Which kind it has is the same for all threads of a block.
template <class Visit>
FB_DEVICE void fb_with_pixels(const fb_source& source, const fb_u8* scratch, Visit visit) {
  switch (source.kind) {
    case FB_SOURCE_RGB: visit(FbInput<RgbSource>{source, {source}}); break;
    case FB_SOURCE_PLANAR: visit(FbInput<PlanarSource>{source, {source}}); break;
    case FB_SOURCE_GRAY: visit(FbInput<GraySource>{source, {source}}); break;
    case FB_SOURCE_YCBCR: visit(FbInput<YcbcrSource>{source, {source}}); break;
    default: {
      const fb_plane& plane = source.planes[0];
      const fb_u32* pixels = reinterpret_cast<const fb_u32*>(scratch + plane.address);
      visit(FbInput<RgbxSource>{source, {pixels, plane.pitch / 4}});
    }
  }
}

#endif
