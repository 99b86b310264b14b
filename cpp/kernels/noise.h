// Normal noise: rust/core/src/noise.rs and rng.rs.
//
// | function     | CPU reference       | rounding                      |
// |--------------|---------------------|-------------------------------|
// | fb_philox    | rng.rs, philox      | none                          |
// | fb_quantile  | noise.rs            | none: elements are the host's |
#ifndef FOREBAY_KERNELS_NOISE_H
#define FOREBAY_KERNELS_NOISE_H

#include "render.h"

// As many as quantiles_of's.
constexpr fb_u32 kFbQuantiles = 4096;

// Ten rounds of Philox over a pixel's number; the first three words, for its channels.
FB_DEVICE void fb_philox(fb_u32 pixel, const fb_u32 (&key)[2], fb_u32 (&words)[3]) {
  fb_u32 a = pixel;
  fb_u32 b = 0;
  fb_u32 c = 0;
  fb_u32 d = 0;
  fb_u32 k0 = key[0];
  fb_u32 k1 = key[1];
  for (fb_u32 round = 0; round < 10; round++) {
    const fb_u64 left = 0xD2511F53ull * a;
    const fb_u64 right = 0xCD9E8D57ull * c;
    a = static_cast<fb_u32>(right >> 32) ^ b ^ k0;
    b = static_cast<fb_u32>(right);
    c = static_cast<fb_u32>(left >> 32) ^ d ^ k1;
    d = static_cast<fb_u32>(left);
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  words[0] = a;
  words[1] = b;
  words[2] = c;
}

FB_DEVICE fb_u32 fb_quantile(fb_u32 word) { return word >> 20; }

#endif
