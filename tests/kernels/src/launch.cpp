// The kernels, compiled for the host, behind C functions.
#include "host.h"
#include "render.cu"

extern "C" {

void fb_host_inverse_dct(const fb_u8* blob, fb_u8* scratch, fb_u64 jobs_offset, fb_u32 tiles,
                         fb_u32 jobs) {
  fb_launch(fb_inverse_dct_all, tiles, jobs, blob, scratch, jobs_offset);
}

void fb_host_resample_across(const fb_u8* blob, fb_u8* scratch, fb_u64 jobs_offset, fb_u32 tiles,
                             fb_u32 jobs) {
  fb_launch(fb_resample_across, tiles, jobs, blob, scratch, jobs_offset);
}

void fb_host_resample_down(const fb_u8* blob, fb_u8* scratch, fb_u64 jobs_offset, fb_u32 tiles,
                           fb_u32 jobs) {
  fb_launch(fb_resample_down, tiles, jobs, blob, scratch, jobs_offset);
}
}
