/* A faster reader of baseline Huffman data, put in the place of libjpeg-turbo's.
 *
 * libjpeg looks a code up and then fetches the value's bits; here one look-up gives run, value and
 * length for most coefficients. It gives the same coefficients or gives up: whatever is not clean
 * (a bad code, data that ends early, a marker out of place) ends the decode with FB_JPEG_IRREGULAR
 * or FB_JPEG_IMPOSSIBLE, and the caller starts over with libjpeg's own reader, whose verdict
 * counts.
 */
#ifndef FOREBAY_JPEG_HUFFMAN_H
#define FOREBAY_JPEG_HUFFMAN_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* After stdio.h, whose FILE jpeglib.h needs. */
#include <jpeglib.h>

/* Bits of the look-up. Of 400 photos' coefficients 93 % are complete within 10 bits. */
#define FB_HUFFMAN_LOOK 10

struct fb_huffman_table {
  /* What the entries were made from. */
  uint8_t bits[17];
  uint8_t values[256];
  int is_dc;
  int built;
  /* By the next bits: see entry_of in jpeg_huffman.c. */
  int32_t entries[1 << FB_HUFFMAN_LOOK];
  /* The same of AC codes for blocks that nobody wants, as many codes at once as are complete. */
  uint16_t strides[1 << FB_HUFFMAN_LOOK];
  /* Longer codes: by length, the largest code (left-aligned to 16 bits, exclusive) and what to add
   * to a code to find its value. */
  uint32_t limit[18];
  int32_t offset[17];
};

/* The most bytes that an MCU can take: 10 blocks of 64 coefficients, 16 bits of code and 15 of
 * value each. As many must lie behind the reader before each MCU, so that it need not look. */
#define FB_HUFFMAN_MCU_BYTES 2480
/* Data without stuffing, a part at a time: small enough to stay in the first-level cache, and what
 * lies behind the last row that is wanted is not touched at all. */
#define FB_HUFFMAN_PART 16384

struct fb_huffman {
  /* The file's data, from the first byte that is not in `clean` yet. */
  const uint8_t* raw;
  const uint8_t* raw_end;
  int ended; /* `raw` stands at a marker or the end: behind `clean` come zeros */
  size_t used;
  size_t filled;
  uint64_t bits; /* the next one on top */
  int count;     /* how many of them count */
  uint32_t restarts_to_go;
  int next_restart;
  int blocks;
  int32_t dc[MAX_COMPS_IN_SCAN];
  int component[D_MAX_BLOCKS_IN_MCU];
  const struct fb_huffman_table* dc_of[D_MAX_BLOCKS_IN_MCU];
  const struct fb_huffman_table* ac_of[D_MAX_BLOCKS_IN_MCU];
  struct fb_huffman_table tables[2][NUM_HUFF_TBLS];
  uint8_t clean[FB_HUFFMAN_PART + FB_HUFFMAN_MCU_BYTES + 8];
};

/* What came of an MCU. */
enum fb_huffman_outcome {
  FB_HUFFMAN_READ = 0,
  FB_HUFFMAN_IRREGULAR = 1, /* legal or not: libjpeg knows */
  /* What no encoder writes: an unknown code, or whole bytes that no block needs before a restart.
   * libjpeg need not notice: its own quick reader takes an unknown code for a zero. */
  FB_HUFFMAN_IMPOSSIBLE = 2
};

/* Takes over the scan that `info` is about to read: libjpeg will call `decode_mcu` in the place of
 * its own. 0 if the scan is not of the kind that can be taken over. */
int fb_huffman_take_over(struct fb_huffman* huffman, j_decompress_ptr info,
                         boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW*));

/* One MCU into `blocks` (zeroed before), or nowhere if NULL. */
enum fb_huffman_outcome fb_huffman_decode_mcu(struct fb_huffman* huffman, uint32_t restart_interval,
                                              JBLOCKROW* blocks);

/* The first of the file's bytes that no MCU has taken a bit from. */
const uint8_t* fb_huffman_position(const struct fb_huffman* huffman);

#endif
