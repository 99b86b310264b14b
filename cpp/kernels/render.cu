// Renders a batch of images of any sizes: a pass of all of them is two launches. One before makes
// planes of coefficients, where there are any.
//
// | kernel             | CPU reference (rust/codec/src/pixel) | rounding                      |
// |--------------------|--------------------------------------|-------------------------------|
// | fb_inverse_dct_all | libjpeg-turbo's jidctint.c, idct.h   | half up at 11, then 18 bits   |
// | fb_resample_across | horizontal/scalar.rs, here weigh.h   | int32 sums, half up, clamped  |
// | fb_resample_down   | vertical/scalar.rs, here weigh.h     | int32 sums, half up, clamped  |
// |  - their input     | gather/scalar.rs, here gather.h      | as there                      |
// |  - its colour      | color/scalar.rs, here color.h        | 8 bits after each operation   |
// |  - its write       | write/scalar.rs                      | in the tables, by the host    |
// | fb_levels_to_tables| color/levels.rs, here levels.h       | as there                      |
// | fb_add_layers      | ../render/mixture.rs, here layers.h  | as there                      |
// | fb_erase           | write/mod.rs, here noise.h           | by the host                   |
// | fb_mix             | ../mix.rs, here mix.h                | as there                      |
//
// All but fb_mix: grid (tiles of the largest job, jobs), block (kFbBlock). `jobs` is the blob
// offset of the launch's first fb_job, a multiple of 8; slots are aligned to their elements. The
// host has checked that every address that a job leads to exists (rust/cuda/src/pack/check.rs).
//
// device.h or host.h comes first, by the compiler's command line.
#include "across.h"
#include "down.h"
#include "huffman.h"
#include "idct.h"
#include "layers.h"
#include "levels.h"
#include "mix.h"
#include "noise.h"
#include "render.h"

// One thread a block of a component; grid (tiles of the largest, components). `jobs` is the blob
// offset of the first fb_blocks.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_inverse_dct_all(const fb_u8* __restrict__ blob, fb_u8*, fb_u64 jobs) {
  const fb_blocks& blocks = reinterpret_cast<const fb_blocks*>(blob + jobs)[blockIdx.y];
  const fb_u32 index = blockIdx.x * kFbBlock + threadIdx.x;
  if (index < blocks.across * blocks.down) {
    fb_block_to_samples(blocks, index);
  }
}

// Pixel `index` of the part.
template <class Element>
FB_DEVICE void fb_erase_pixel(const fb_erasure& erasure, const fb_u8* blob, fb_u32 index) {
  const fb_u64 x = erasure.x + index % erasure.width;
  const fb_u64 y = erasure.y + index / erasure.width;
  fb_u32 words[3] = {};
  const bool is_noise = erasure.noise != kFbNoSum;
  if (is_noise) {
    fb_philox(index, erasure.key, words);
  }
  const Element* noise = reinterpret_cast<const Element*>(blob + (is_noise ? erasure.noise : 0));
  Element* slot = reinterpret_cast<Element*>(erasure.address);
  const fb_u64 pixel = y * erasure.out_width + x;
  const fb_u64 pixels = static_cast<fb_u64>(erasure.out_width) * erasure.out_height;
  const bool is_last = erasure.layout == FB_LAYOUT_CHANNELS_LAST;
  for (fb_u32 channel = 0; channel < erasure.channels; channel++) {
    const fb_u64 place = is_last ? pixel * erasure.channels + channel : channel * pixels + pixel;
    slot[place] = is_noise ? noise[channel * kFbQuantiles + fb_quantile(words[channel])]
                           : static_cast<Element>(erasure.values[channel]);
  }
}

// One thread a pixel; grid (tiles of the largest, erasures). `jobs` is the blob offset of the first
// fb_erasure.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_erase(const fb_u8* __restrict__ blob, fb_u8*, fb_u64 jobs) {
  const fb_erasure& erasure = reinterpret_cast<const fb_erasure*>(blob + jobs)[blockIdx.y];
  const fb_u32 index = blockIdx.x * kFbBlock + threadIdx.x;
  if (index >= erasure.width * erasure.height) {
    return;
  }
  switch (erasure.element_bytes) {
    case 1: fb_erase_pixel<fb_u8>(erasure, blob, index); break;
    case 2: fb_erase_pixel<fb_u16>(erasure, blob, index); break;
    default: fb_erase_pixel<fb_u32>(erasure, blob, index);
  }
}

// One thread an element of a slot.
extern "C" __global__ void __launch_bounds__(kFbBlock) fb_mix(const fb_mixing mix) {
  const fb_u64 index = static_cast<fb_u64>(blockIdx.x) * kFbBlock + threadIdx.x;
  if (index < mix.count) {
    fb_mix_element(mix, index);
  }
}
