// What the render kernels read: plain data that rust/cuda/src/pack writes.
//
// Every struct is mirrored field by field in rust/cuda/src/pack/descriptor.rs; both sides assert
// sizes and offsets. "Blob" and "scratch" offsets are in bytes from the kernels' first two
// arguments, so the packed bytes can lie at any address that is a multiple of 8.
#ifndef FOREBAY_KERNELS_RENDER_H
#define FOREBAY_KERNELS_RENDER_H

// NVRTC has no <stdint.h> of its own.
typedef unsigned char fb_u8;
typedef unsigned short fb_u16;
typedef short fb_i16;
typedef unsigned int fb_u32;
typedef int fb_i32;
typedef unsigned long long fb_u64;

// Threads of a block, along x.
constexpr fb_u32 kFbBlock = 256;

// Threads that run together.
constexpr fb_u32 kFbWarp = 32;

enum fb_axis_kind : fb_u32 {
  FB_AXIS_RUN = 0,       // output i is input first + step * i
  FB_AXIS_LIST = 1,      // output i is input table[i], fb_u32
  FB_AXIS_WEIGHTED = 2,  // output i is the weighted sum of the inputs in table[i], fb_span
};

// Consecutive inputs of one output.
struct fb_span {
  fb_u32 start;
  fb_u32 count;
};

// One direction of a resample.
struct fb_axis {
  fb_u64 table;    // blob offset
  fb_u64 weights;  // blob offset of fb_i16[tap][content_len]: adjacent outputs, adjacent weights
  fb_u32 kind;     // fb_axis_kind
  fb_u32 out_len;
  fb_u32 content_start;  // outputs outside content_start + [0, content_len) are fill
  fb_u32 content_len;
  fb_u32 first;
  fb_i32 step;
  fb_u32 precision;  // fractional bits of the weights
  fb_u32 reserved;
};

enum fb_upsampling : fb_u32 {
  FB_UPSAMPLING_NONE = 0,
  FB_UPSAMPLING_REPLICATE = 1,
  FB_UPSAMPLING_H2V1 = 2,
  FB_UPSAMPLING_H1V2 = 3,
  FB_UPSAMPLING_H2V2 = 4,
};

// 8-bit samples; sample (x, y) lies at address + y * pitch + x * bytes per sample.
struct fb_plane {
  fb_u64 address;     // of sample (0, 0), which itself need not exist; a scratch offset for
                      // FB_SOURCE_RGBX
  fb_u32 pitch;       // bytes from row to row
  fb_u32 upsampling;  // fb_upsampling
  fb_u32 expand_x;    // pixels per sample, for FB_UPSAMPLING_REPLICATE
  fb_u32 expand_y;
  fb_i32 left;  // first and last samples that exist: those beyond are as the nearest one
  fb_i32 right;
  fb_i32 top;
  fb_i32 bottom;
};

enum fb_source_kind : fb_u32 {
  FB_SOURCE_RGB = 0,     // interleaved, 3 bytes a pixel
  FB_SOURCE_GRAY = 1,    // one plane, which is all three channels
  FB_SOURCE_RGBX = 2,    // 4 bytes a pixel, in the scratch: what a pass before left
  FB_SOURCE_YCBCR = 3,   // three planes, as JPEG stores them
  FB_SOURCE_PLANAR = 4,  // three planes of whole channels: red, green, blue
};

// The pixels that a pass reads.
struct fb_source {
  fb_u32 kind;       // fb_source_kind
  fb_u32 transpose;  // rows and columns change places
  fb_i32 origin_x;   // where the input begins in the planes, before they change places
  fb_i32 origin_y;
  fb_plane planes[3];
};

enum fb_layout : fb_u32 {
  FB_LAYOUT_CONTIGUOUS = 0,
  FB_LAYOUT_CHANNELS_LAST = 1,
};

// Where a pass's pixels go.
struct fb_output {
  fb_u64 address;        // of the slot; a scratch offset for an intermediate
  fb_u64 table;          // blob offset of the elements of all 256 values, per channel
  fb_u32 element_bytes;  // 1, 2 or 4; 0 for an intermediate of 4 bytes a pixel
  fb_u32 channels;       // 1 or 3, of an intermediate as of the slot
  fb_u32 layout;         // fb_layout
  fb_u32 reserved;
};

enum fb_color_kind : fb_u32 {
  FB_COLOR_BRIGHTNESS = 0,
  FB_COLOR_CONTRAST = 1,
  FB_COLOR_SATURATION = 2,
  FB_COLOR_HUE = 3,
  FB_COLOR_GRAYSCALE = 4,
  FB_COLOR_SOLARIZE = 5,   // values from `factor` on are inverted
  FB_COLOR_POSTERIZE = 6,  // the `factor` upper bits stay
  FB_COLOR_PERMUTE = 7,    // `factor` holds where red, green and blue come from, two bits each
  FB_COLOR_TABLES = 8,     // the job's, by channel
};

struct fb_color_op {
  fb_u32 kind;       // fb_color_kind
  float factor;      // turns for FB_COLOR_HUE
  float complement;  // 1 - factor, rounded from double
};

constexpr fb_u64 kFbNoSum = ~0ull;

// One pass over one image.
struct fb_job {
  fb_source source;
  fb_axis x;
  fb_axis y;
  fb_output output;
  fb_u64 across;      // scratch offset of fb_resample_across's pixels, 4 bytes each
  fb_u32 across_top;  // the first input row that the y axis needs
  fb_u32 across_rows;
  fb_u64 color;  // blob offset of fb_color_op[color_ops]
  fb_u32 color_ops;
  fb_u32 fill;         // as a pixel of 4 bytes
  fb_u64 sum;          // scratch offset of where to add the grey values, or the values of one
                       // channel, or kFbNoSum
  fb_u64 mean_sum;     // scratch offset of the grey sum that contrast takes, or kFbNoSum for 0
  fb_u32 mean_pixels;  // that the sum is over
  fb_u32 reserved;
  fb_u64 histogram;  // scratch offset of where to count values, fb_u32[3][256], or kFbNoSum
  fb_u64 tables;     // scratch offset of FB_COLOR_TABLES's fb_u8[3][256], or kFbNoSum for none
  fb_u64 gather;     // blob offset of an fb_gather, or kFbNoSum; only of FB_SOURCE_RGBX
};

enum fb_gather_kind : fb_u32 {
  FB_GATHER_NEAREST = 0,
  FB_GATHER_BILINEAR = 1,
  FB_GATHER_SHARPEN = 2,
};

// The pass's input, of which each pixel is made from some of its source's.
struct fb_gather {
  fb_u32 kind;      // fb_gather_kind
  fb_u32 projects;  // the grid is divided by `projection` times (x, y), plus 1, and less 1 then
  fb_u32 fills;     // what lies outside is `fill`; else it is black that is not told from it
  fb_u32 fill;      // as a pixel of 4 bytes
  fb_u32 width;     // of the source
  fb_u32 height;
  float blur;  // for FB_GATHER_SHARPEN: weight of what a blur changes
  fb_u32 reserved;
  float origin[2];   // coordinates of the first pixel
  float rows[2][3];  // from (x, y, 1) to the grid, which is -1 and 1 at the source's borders
  float projection[2];
};

enum fb_levels_kind : fb_u32 {
  FB_LEVELS_AUTOCONTRAST = 0,
  FB_LEVELS_EQUALIZE = 1,
};

// Counts of a pass's result that become tables of the next one.
struct fb_levels {
  fb_u64 histogram;
  fb_u64 tables;
  fb_u32 kind;  // fb_levels_kind
  fb_u32 reserved;
};

// An image in the scratch, of 4 bytes a pixel, and what it counts.
struct fb_layer {
  fb_u64 image;
  float weight;
  fb_u32 reserved;
};

// A sum of images of one size.
struct fb_mixture {
  fb_u64 base;    // scratch offset of the first
  fb_u64 out;     // and of the sum
  fb_u64 layers;  // blob offset of fb_layer[count], which are added in order
  fb_u32 count;
  fb_u32 pixels;
  float weight;  // of the first
  fb_u32 reserved;
};

// A part of a slot that holds one value a channel, or noise.
struct fb_erasure {
  fb_u64 address;  // of the slot
  fb_u32 element_bytes;
  fb_u32 layout;     // fb_layout
  fb_u32 out_width;  // of the slot's image
  fb_u32 out_height;
  fb_u32 x;
  fb_u32 y;
  fb_u32 width;
  fb_u32 height;
  fb_u32 channels;
  fb_u32 values[3];  // elements, in the lower bits
  fb_u64 noise;      // blob offset of the elements of all quantiles, per channel, or kFbNoSum
  fb_u32 key[2];     // of the random numbers that name a pixel's
};

// Blocks of a JPEG's component, before the inverse DCT, and the plane that they become.
struct fb_blocks {
  fb_u64 coefficients;  // address of fb_i16[across * down][64] in natural order, aligned to 8
  fb_u64 samples;       // address of the plane, aligned to 8
  fb_u32 across;
  fb_u32 down;
  fb_u32 pitch;  // bytes from row to row of the plane, a multiple of 8
  fb_u32 reserved;
  fb_u16 quantisation[64];
};

enum fb_mix_kind : fb_u32 {
  FB_MIX_BLEND_FLOAT32 = 0,
  FB_MIX_BLEND_FLOAT16 = 1,
  FB_MIX_BLEND_BFLOAT16 = 2,
  FB_MIX_PASTE_1 = 3,  // elements of one byte, of two, of four
  FB_MIX_PASTE_2 = 4,
  FB_MIX_PASTE_4 = 5,
};

// A mix of a batch's field, each slot with the one before it and the first with the last. A
// parameter of its kernel: such are of 4 kB at the most.
struct fb_mixing {
  fb_u64 address;  // of the first slot
  fb_u64 pitch;    // bytes from slot to slot
  fb_u64 count;    // elements of a slot that are mixed
  fb_u32 slots;
  fb_u32 kind;        // fb_mix_kind
  float image;        // weight of the slot's own elements, for a blend
  float other;        // 1 - image, rounded from double
  fb_u32 line;        // for a paste: elements from row to row of a plane, and
  fb_u32 height;      // rows of a plane,
  fb_u32 left;        // the region's first element of a row,
  fb_u32 run;         // its elements of a row,
  fb_u32 top;         // its first row
  fb_u32 rows;        // and how many it has
  fb_u32 taken[896];  // a bit a slot, the lowest first: whether it takes part
};

static_assert(sizeof(fb_mixing) == 3648, "mirrored");
static_assert(sizeof(fb_erasure) == 72 && sizeof(fb_blocks) == 160, "mirrored");
static_assert(sizeof(fb_span) == 8 && sizeof(fb_axis) == 48 && sizeof(fb_plane) == 40, "mirrored");
static_assert(sizeof(fb_source) == 136 && sizeof(fb_output) == 32, "mirrored");
static_assert(sizeof(fb_color_op) == 12 && sizeof(fb_job) == 344, "mirrored");
static_assert(sizeof(fb_gather) == 72, "mirrored");
static_assert(sizeof(fb_levels) == 24, "mirrored");
static_assert(sizeof(fb_layer) == 16 && sizeof(fb_mixture) == 40, "mirrored");

#endif
