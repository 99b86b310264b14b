// Images of which one is added up: rust/codec/src/render/mixture.rs, in float32 one after the other
// and rounded towards zero.
#ifndef FOREBAY_KERNELS_LAYERS_H
#define FOREBAY_KERNELS_LAYERS_H

#include "color.h"
#include "render.h"

// One thread a pixel; grid (tiles of the largest, mixtures). `jobs` is the blob offset of the first
// fb_mixture.
extern "C" __global__ void __launch_bounds__(kFbBlock)
    fb_add_layers(const fb_u8* __restrict__ blob, fb_u8* scratch, fb_u64 jobs) {
  const fb_mixture& mixture = reinterpret_cast<const fb_mixture*>(blob + jobs)[blockIdx.y];
  const fb_u32 index = blockIdx.x * kFbBlock + threadIdx.x;
  if (index >= mixture.pixels) {
    return;
  }
  const auto pixel = [&](fb_u64 image) {
    return fb_rgb(reinterpret_cast<const fb_u32*>(scratch + image)[index]);
  };
  const FbRgb base = pixel(mixture.base);
  FbColor sum = {mixture.weight * fb_float(base.red), mixture.weight * fb_float(base.green),
                 mixture.weight * fb_float(base.blue)};
  const fb_layer* layers = reinterpret_cast<const fb_layer*>(blob + mixture.layers);
  for (fb_u32 i = 0; i < mixture.count; i++) {
    const FbRgb layer = pixel(layers[i].image);
    sum.x += layers[i].weight * fb_float(layer.red);
    sum.y += layers[i].weight * fb_float(layer.green);
    sum.z += layers[i].weight * fb_float(layer.blue);
  }
  reinterpret_cast<fb_u32*>(scratch + mixture.out)[index] =
      fb_rgbx({fb_truncate(sum.x), fb_truncate(sum.y), fb_truncate(sum.z)});
}

#endif
