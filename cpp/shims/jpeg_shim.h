/* A plain-C face of libjpeg's decompressor for forebay-codec: errors as return codes, one region.
 *
 * libjpeg reports errors by a call that must not return, so every function here that calls into it
 * sets up a setjmp first; none of them owns anything that a longjmp would skip. Nothing is printed
 * and nothing exits.
 */
#ifndef FOREBAY_JPEG_SHIM_H
#define FOREBAY_JPEG_SHIM_H

#include <stddef.h>
#include <stdint.h>

/* Return codes; rust/codec/src/jpeg/ffi.rs repeats them. */
enum fb_jpeg_status {
  FB_JPEG_OK = 0,
  FB_JPEG_DAMAGED = 1,     /* the file is wrong */
  FB_JPEG_UNSUPPORTED = 2, /* a valid file of a kind that libjpeg was not built for */
  FB_JPEG_MEMORY = 3,      /* malloc failed */
  FB_JPEG_STOPPED = 4,     /* `stop` said so */
  FB_JPEG_MISUSE = 5,      /* called out of order: a bug of ours */
  /* Start over with `careful`: the fast reader met what is not clean, */
  FB_JPEG_IRREGULAR = 6, /* for libjpeg to judge */
  FB_JPEG_IMPOSSIBLE = 7 /* and damage, even if libjpeg does not warn about it */
};

/* Colours of the rows that come out. */
enum fb_jpeg_colour {
  FB_JPEG_RGB = 0, /* 3 bytes a pixel */
  FB_JPEG_CMYK = 1 /* 4 bytes a pixel, as stored (Adobe stores 255 - ink) */
};

struct fb_jpeg_header {
  uint32_t width;
  uint32_t height;
  uint32_t colour; /* enum fb_jpeg_colour */
};

/* Columns that rows hold after fb_jpeg_start: the asked ones and margins. */
struct fb_jpeg_columns {
  uint32_t x;
  uint32_t width;
};

/* One component's part of a window of blocks, and its quantisation, in natural order. */
struct fb_jpeg_component {
  uint32_t x; /* first block of the component that the window holds */
  uint32_t y;
  uint32_t across; /* blocks that it holds */
  uint32_t down;
  uint16_t quantisation[64];
};

/* Coefficients of a region: whole MCUs, those behind the image's edges included. */
struct fb_jpeg_window {
  uint32_t mcu_x;
  uint32_t mcu_y;
  uint32_t mcus_across;
  uint32_t mcus_down;
  struct fb_jpeg_component components[3];
};

/* Returns nonzero when the work is no longer wanted; called about once per row of MCUs. */
typedef int (*fb_jpeg_stop)(const void* context);

struct fb_jpeg;

/* NULL when out of memory. One object serves one image at a time, on one thread at a time. */
struct fb_jpeg* fb_jpeg_create(void);
void fb_jpeg_destroy(struct fb_jpeg* jpeg);

/* Reads the header. `bytes` and `context` must stay valid until fb_jpeg_close. */
int fb_jpeg_open(struct fb_jpeg* jpeg, const uint8_t* bytes, size_t len, fb_jpeg_stop stop,
                 const void* context, struct fb_jpeg_header* header);

/* After fb_jpeg_open, for a JPEG inside another file, which says that it has `components`: rows
 * come as RGB of YCbCr if `ycbcr`, else as they are stored, whatever its own markers say. */
int fb_jpeg_declare(struct fb_jpeg* jpeg, uint32_t components, int ycbcr);

/* Starts decoding at 1 / `by` of the size (1, 2, 4 or 8), of columns [x, x + width) at that size
 * and of the margin that makes them exact. Unless `careful`, Huffman data is read by
 * jpeg_huffman.c's reader where that can. */
int fb_jpeg_start(struct fb_jpeg* jpeg, uint32_t by, uint32_t x, uint32_t width, int careful,
                  struct fb_jpeg_columns* columns);

/* In the place of fb_jpeg_start, for baseline files of three components in one scan: the window of
 * MCUs that holds the region's samples and a neighbour of each, as upsampling wants them.
 * FB_JPEG_IRREGULAR for other files. */
int fb_jpeg_start_window(struct fb_jpeg* jpeg, uint32_t x, uint32_t y, uint32_t width,
                         uint32_t height, struct fb_jpeg_window* window);

/* Writes the window's coefficients, not dequantised, in natural order: the first component's blocks
 * row by row, then the second's and the third's. Nothing else may follow but fb_jpeg_close. */
int fb_jpeg_read_window(struct fb_jpeg* jpeg, const struct fb_jpeg_window* window, int16_t* into);

/* Passes over `rows` rows without computing their pixels. */
int fb_jpeg_skip_rows(struct fb_jpeg* jpeg, uint32_t rows);

/* Writes the next `rows` rows, `stride` bytes apart; the caller has checked that they exist. */
int fb_jpeg_read_rows(struct fb_jpeg* jpeg, uint8_t* into, size_t stride, uint32_t rows);

/* After the last row: reads on to the end of the image, as jpeg_finish_decompress does. What is
 * found there is counted as warnings; FB_JPEG_DAMAGED if libjpeg refuses it. */
int fb_jpeg_finish(struct fb_jpeg* jpeg);

/* Ends the image, finished or not, and frees what it took. Harmless when nothing is open. */
void fb_jpeg_close(struct fb_jpeg* jpeg);

/* Version of libjpeg-turbo that the shim was compiled against. */
const char* fb_jpeg_version(void);

/* Text of the last error; number of warnings since open. */
const char* fb_jpeg_message(const struct fb_jpeg* jpeg);
uint32_t fb_jpeg_warnings(const struct fb_jpeg* jpeg);

#endif
