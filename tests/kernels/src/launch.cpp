// The kernels, compiled for the host, behind C functions.
#include "host.h"
#include "render.cu"

#define FB_HOST(name)                                                                      \
  void fb_host_##name(const fb_u8* blob, fb_u8* scratch, fb_u64 jobs_offset, fb_u32 tiles, \
                      fb_u32 jobs) {                                                       \
    fb_launch(fb_##name, tiles, jobs, blob, scratch, jobs_offset);                         \
  }

extern "C" {
FB_HOST(huffman_tables)
FB_HOST(huffman_guess)
FB_HOST(huffman_settle)
FB_HOST(huffman_place)
FB_HOST(huffman_write)
FB_HOST(inverse_dct_all)
FB_HOST(resample_across)
FB_HOST(resample_down)
FB_HOST(levels_to_tables)
FB_HOST(add_layers)
FB_HOST(erase)

void fb_host_mix(const fb_u8* parameter, fb_u32 tiles) {
  fb_launch(fb_mix, tiles, 1, *reinterpret_cast<const fb_mixing*>(parameter));
}

float fb_host_widened(fb_u16 bits) { return fb_widened(FbHalf{bits}); }
fb_u16 fb_host_narrowed(float value) { return fb_rounded<FbHalf>(value).bits; }
fb_u16 fb_host_narrowed_brain(float value) { return fb_rounded<FbBrain>(value).bits; }
}
