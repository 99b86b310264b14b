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
FB_HOST(erase)
}
