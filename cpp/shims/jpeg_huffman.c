#include "jpeg_huffman.h"

#include <string.h>

/* Shifts by a register's count take a third of the time with BMI2, and there are two per code: 4 %
 * of a whole decode. The loader of programs chooses by what the processor has. */
#if defined(__x86_64__) && defined(__linux__)
#define FB_WITH_BMI2 __attribute__((target_clones("bmi2", "default")))
#else
#define FB_WITH_BMI2
#endif

/* The head of libjpeg-turbo 3.1's internal struct of this name (src/jpegint.h). */
struct jpeg_entropy_decoder {
  void (*start_pass)(j_decompress_ptr);
  boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW*);
};

/* Zigzag to natural order. What runs past the block's end lands on its last coefficient, as with
 * libjpeg; so does the zero that an end of block "stores". */
static const uint8_t kNatural[64 + 64 + 16] = {
    0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48, 41, 34,
    27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63,
    63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63, 63};

/* An entry: bits 0-6 the length that is consumed, bit 7 set if the value's bits are still to come,
 * bits 8-15 how far the position advances (or the symbol), bits 16-31 the value. 0: a longer code.
 */
#define FB_LENGTH(entry) ((entry) & 0x7f)
#define FB_OPEN 0x80
#define FB_MIDDLE(entry) (((entry) >> 8) & 0xff)
#define FB_VALUE(entry) ((entry) >> 16)

/* How far the end of a block advances: past any position. */
#define FB_END_OF_BLOCK 64

/* The value that `size` bits stand for (F.2.2.1 of the JPEG standard). */
static inline int32_t extend(uint32_t bits, int size) {
  const int32_t value = (int32_t)bits;
  return value < (1 << (size - 1)) ? value - (1 << size) + 1 : value;
}

/* The advance of an AC symbol; that of a DC symbol is of no use. */
static int advance_of(int symbol) {
  const int run = symbol >> 4, size = symbol & 15;
  return size == 0 && run != 15 ? FB_END_OF_BLOCK : run + 1;
}

/* The entry for the look-up `index`, whose first `length` bits are the code of `symbol`. */
static int32_t entry_of(int is_dc, uint32_t index, int length, int symbol) {
  const int size = is_dc ? symbol : symbol & 15;
  const int left = FB_HUFFMAN_LOOK - length;
  if (size > left) {
    return (symbol << 8) | FB_OPEN | length;
  }
  int32_t value = 0;
  if (size > 0) {
    value = extend((index >> (left - size)) & ((1U << size) - 1), size);
  }
  const int middle = is_dc ? 0 : advance_of(symbol);
  return (int32_t)((uint32_t)value << 16) | (middle << 8) | (length + size);
}

/* A stride: bits 0-3 the length of all its codes and values, bit 4 set if the last one ends the
 * block, bits 5-15 how far the others advance. 0: not even one is complete. */
#define FB_STRIDE_LENGTH(stride) ((stride) & 0xf)
#define FB_STRIDE_END 0x10
#define FB_STRIDE_ADVANCE(stride) ((stride) >> 5)

static uint16_t stride_of(const int32_t* entries, uint32_t index) {
  int length = 0, advance = 0;
  for (;;) {
    const int32_t entry = entries[(index << length) & ((1U << FB_HUFFMAN_LOOK) - 1)];
    if (entry == 0 || (entry & FB_OPEN) || length + FB_LENGTH(entry) > FB_HUFFMAN_LOOK) {
      break;
    }
    length += FB_LENGTH(entry);
    if (FB_MIDDLE(entry) == FB_END_OF_BLOCK) {
      return (uint16_t)(advance << 5 | FB_STRIDE_END | length);
    }
    advance += FB_MIDDLE(entry);
  }
  return (uint16_t)(advance << 5 | length);
}

/* Builds from a table that libjpeg has validated (start_pass did, for every table of the scan). */
static void build(struct fb_huffman_table* table, const JHUFF_TBL* from, int is_dc) {
  if (table->built && table->is_dc == is_dc && memcmp(table->bits, from->bits, 17) == 0 &&
      memcmp(table->values, from->huffval, 256) == 0) {
    return;
  }
  memcpy(table->bits, from->bits, 17);
  memcpy(table->values, from->huffval, 256);
  table->is_dc = is_dc;
  table->built = 1;
  memset(table->entries, 0, sizeof table->entries);
  uint32_t code = 0;
  int position = 0;
  for (int length = 1; length <= 16; length++) {
    table->offset[length] = position - (int32_t)code;
    for (int i = 0; i < from->bits[length]; i++, code++, position++) {
      if (length <= FB_HUFFMAN_LOOK) {
        const int left = FB_HUFFMAN_LOOK - length;
        const uint32_t first = code << left;
        for (uint32_t index = first; index < first + (1U << left); index++) {
          table->entries[index] = entry_of(is_dc, index, length, from->huffval[position]);
        }
      }
    }
    table->limit[length] = code << (16 - length);
    code <<= 1;
  }
  for (uint32_t index = 0; !is_dc && index < 1U << FB_HUFFMAN_LOOK; index++) {
    table->strides[index] = stride_of(table->entries, index);
  }
  table->limit[17] = UINT32_MAX;
}

/* Moves on to the next part: what is left comes to the front, stuffing is taken out of what
 * follows. */
static void top_up(struct fb_huffman* huffman) {
  uint8_t* clean = huffman->clean;
  size_t filled = huffman->filled - huffman->used;
  memmove(clean, clean + huffman->used, filled);
  huffman->used = 0;
  const uint8_t* raw = huffman->raw;
  while (filled < FB_HUFFMAN_PART && !huffman->ended) {
    size_t run = (size_t)(huffman->raw_end - raw);
    run = run < FB_HUFFMAN_PART - filled ? run : FB_HUFFMAN_PART - filled;
    const uint8_t* special = run == 0 ? NULL : memchr(raw, 0xff, run);
    run = special != NULL ? (size_t)(special - raw) : run;
    memcpy(clean + filled, raw, run);
    filled += run;
    raw += run;
    if (special != NULL && huffman->raw_end - raw >= 2 && raw[1] == 0) {
      clean[filled++] = 0xff;
      raw += 2;
    } else if (special != NULL || raw == huffman->raw_end) {
      huffman->ended = 1;
    }
  }
  if (huffman->ended) {
    memset(clean + filled, 0, FB_HUFFMAN_MCU_BYTES + 8);
  }
  huffman->raw = raw;
  huffman->filled = filled;
}

/* Starts on the data at `raw`, with nothing known of what came before. */
static void begin(struct fb_huffman* huffman, const uint8_t* raw) {
  huffman->raw = raw;
  huffman->ended = 0;
  huffman->used = 0;
  huffman->filled = 0;
  huffman->bits = 0;
  huffman->count = 0;
  memset(huffman->dc, 0, sizeof huffman->dc);
  top_up(huffman);
}

int fb_huffman_take_over(struct fb_huffman* huffman, j_decompress_ptr info,
                         boolean (*decode_mcu)(j_decompress_ptr, JBLOCKROW*)) {
  if (info->progressive_mode || info->arith_code || info->data_precision != 8 ||
      info->comps_in_scan != info->num_components) {
    return 0;
  }
  for (int block = 0; block < info->blocks_in_MCU; block++) {
    const int component = info->MCU_membership[block];
    const jpeg_component_info* of = info->cur_comp_info[component];
    struct fb_huffman_table* dc = &huffman->tables[0][of->dc_tbl_no];
    struct fb_huffman_table* ac = &huffman->tables[1][of->ac_tbl_no];
    build(dc, info->dc_huff_tbl_ptrs[of->dc_tbl_no], 1);
    build(ac, info->ac_huff_tbl_ptrs[of->ac_tbl_no], 0);
    huffman->component[block] = component;
    huffman->dc_of[block] = dc;
    huffman->ac_of[block] = ac;
  }
  huffman->blocks = info->blocks_in_MCU;
  huffman->raw_end = info->src->next_input_byte + info->src->bytes_in_buffer;
  begin(huffman, info->src->next_input_byte);
  huffman->restarts_to_go = info->restart_interval;
  huffman->next_restart = 0;
  info->entropy->decode_mcu = decode_mcu;
  return 1;
}

/* Where the reader stands: in registers while an MCU is decoded. */
struct fb_bits {
  const uint8_t* next;
  uint64_t bits;
  int count;
};

/* At least 32 bits: a code of at most 16 and a value of at most 15. Bits that do not count are
 * or-ed too, and again, the same, next time. */
static inline struct fb_bits refill(struct fb_bits in) {
  if (in.count >= 32) {
    return in;
  }
  uint64_t word;
  memcpy(&word, in.next, 8);
  in.bits |= __builtin_bswap64(word) >> in.count;
  in.next += (63 - in.count) >> 3;
  in.count |= 56;
  return in;
}

static inline struct fb_bits drop(struct fb_bits in, int count) {
  in.bits <<= count;
  in.count -= count;
  return in;
}

/* Length and symbol of a code longer than the look-up; -1 if there is none. */
static __attribute__((noinline)) int long_symbol(uint32_t code,
                                                 const struct fb_huffman_table* table) {
  int length = FB_HUFFMAN_LOOK + 1;
  while (code >= table->limit[length]) {
    length++;
  }
  if (length > 16) {
    return -1;
  }
  const int32_t position = (int32_t)(code >> (16 - length)) + table->offset[length];
  return table->values[position] << 8 | length;
}

/* The value of the `size` bits on top; 0 for none. */
static inline int32_t value_on_top(uint64_t bits, int size) {
  return size == 0 ? 0 : extend((uint32_t)(bits >> (64 - size)), size);
}

/* Decodes the difference of a block's first coefficient; 0 if its code is unknown. */
static inline int decode_dc(struct fb_bits* at, const struct fb_huffman_table* table, int32_t* dc) {
  struct fb_bits in = refill(*at);
  int32_t entry = table->entries[in.bits >> (64 - FB_HUFFMAN_LOOK)];
  int32_t difference = FB_VALUE(entry);
  if (entry == 0 || (entry & FB_OPEN)) {
    if (entry == 0) {
      entry = long_symbol((uint32_t)(in.bits >> 48), table);
      if (entry < 0) {
        return 0;
      }
    }
    in = drop(in, FB_LENGTH(entry));
    difference = value_on_top(in.bits, FB_MIDDLE(entry));
    in = drop(in, FB_MIDDLE(entry));
  } else {
    in = drop(in, FB_LENGTH(entry));
  }
  *dc = (int32_t)((uint32_t)*dc + (uint32_t)difference);
  *at = in;
  return 1;
}

/* Decodes one block; 0 if a code is unknown. */
static inline int decode_block(struct fb_bits* at, const struct fb_huffman_table* dc_table,
                               const struct fb_huffman_table* ac_table, int32_t* dc, JCOEF* block) {
  struct fb_bits in = *at;
  int32_t entry;
  if (!decode_dc(&in, dc_table, dc)) {
    return 0;
  }
  block[0] = (JCOEF)*dc;

  int k = 1;
  while (k < DCTSIZE2) {
    in = refill(in);
    entry = ac_table->entries[in.bits >> (64 - FB_HUFFMAN_LOOK)];
    if (__builtin_expect(entry != 0 && (entry & FB_OPEN) == 0, 1)) {
      in = drop(in, FB_LENGTH(entry));
      k += FB_MIDDLE(entry);
      block[kNatural[k - 1]] = (JCOEF)FB_VALUE(entry);
      continue;
    }
    if (entry == 0) {
      entry = long_symbol((uint32_t)(in.bits >> 48), ac_table);
      if (entry < 0) {
        return 0;
      }
    }
    const int symbol = FB_MIDDLE(entry), size = symbol & 15;
    in = drop(in, FB_LENGTH(entry));
    k += advance_of(symbol);
    block[kNatural[k - 1]] = (JCOEF)value_on_top(in.bits, size);
    in = drop(in, size);
  }
  *at = in;
  return 1;
}

/* Passes over one block; 0 if a code is unknown. Its first coefficient counts for the next one. */
static inline int skip_block(struct fb_bits* at, const struct fb_huffman_table* dc_table,
                             const struct fb_huffman_table* ac_table, int32_t* dc) {
  struct fb_bits in = *at;
  if (!decode_dc(&in, dc_table, dc)) {
    return 0;
  }
  int k = 1;
  while (k < DCTSIZE2) {
    in = refill(in);
    const uint32_t index = (uint32_t)(in.bits >> (64 - FB_HUFFMAN_LOOK));
    const int stride = ac_table->strides[index];
    const int next = k + FB_STRIDE_ADVANCE(stride);
    /* Where the block ends with a coefficient, codes behind it are the next block's. */
    if (__builtin_expect(stride != 0 && next < DCTSIZE2, 1)) {
      in = drop(in, FB_STRIDE_LENGTH(stride));
      k = stride & FB_STRIDE_END ? DCTSIZE2 : next;
      continue;
    }
    int32_t entry = ac_table->entries[index];
    if (entry == 0) {
      entry = long_symbol((uint32_t)(in.bits >> 48), ac_table);
      if (entry < 0) {
        return 0;
      }
    } else if ((entry & FB_OPEN) == 0) {
      in = drop(in, FB_LENGTH(entry));
      k += FB_MIDDLE(entry);
      continue;
    }
    const int symbol = FB_MIDDLE(entry);
    in = drop(in, FB_LENGTH(entry));
    in = drop(in, symbol & 15);
    k += advance_of(symbol);
  }
  *at = in;
  return 1;
}

/* Bits of `clean` that were not consumed; negative if zeros behind it were. */
static int64_t bits_left(const struct fb_huffman* huffman) {
  return 8 * ((int64_t)huffman->filled - (int64_t)huffman->used) + huffman->count;
}

/* The RSTn marker that is due must be next, with nothing but padding before it. Kept out of the
 * caller, whose loop needs the registers. */
static __attribute__((noinline)) enum fb_huffman_outcome pass_restart(struct fb_huffman* huffman,
                                                                      uint32_t interval) {
  const uint8_t* raw = huffman->raw;
  if (bits_left(huffman) >= 8) {
    return FB_HUFFMAN_IMPOSSIBLE;
  }
  if (!huffman->ended || huffman->raw_end - raw < 2 || raw[0] != 0xff ||
      raw[1] != 0xd0 + huffman->next_restart) {
    return FB_HUFFMAN_IRREGULAR;
  }
  huffman->next_restart = (huffman->next_restart + 1) & 7;
  huffman->restarts_to_go = interval;
  begin(huffman, raw + 2);
  return FB_HUFFMAN_READ;
}

FB_WITH_BMI2 enum fb_huffman_outcome fb_huffman_decode_mcu(struct fb_huffman* huffman,
                                                           uint32_t restart_interval,
                                                           JBLOCKROW* blocks) {
  if (restart_interval != 0) {
    if (huffman->restarts_to_go == 0) {
      const enum fb_huffman_outcome outcome = pass_restart(huffman, restart_interval);
      if (outcome != FB_HUFFMAN_READ) {
        return outcome;
      }
    }
    huffman->restarts_to_go--;
  }
  if (!huffman->ended && huffman->filled - huffman->used < FB_HUFFMAN_MCU_BYTES + 8) {
    top_up(huffman);
  }
  struct fb_bits in = {huffman->clean + huffman->used, huffman->bits, huffman->count};
  for (int i = 0; i < huffman->blocks; i++) {
    int32_t* dc = &huffman->dc[huffman->component[i]];
    const struct fb_huffman_table *dc_of = huffman->dc_of[i], *ac_of = huffman->ac_of[i];
    const int known = blocks != NULL ? decode_block(&in, dc_of, ac_of, dc, *blocks[i])
                                     : skip_block(&in, dc_of, ac_of, dc);
    if (!known) {
      return FB_HUFFMAN_IMPOSSIBLE;
    }
  }
  huffman->used = (size_t)(in.next - huffman->clean);
  huffman->bits = in.bits;
  huffman->count = in.count;
  return bits_left(huffman) >= 0 ? FB_HUFFMAN_READ : FB_HUFFMAN_IRREGULAR;
}

/* `clean` has lost the stuffing, so its bytes that are left are counted back in the file, where
 * among a scan's data 0 behind 0xff is always stuffing. */
const uint8_t* fb_huffman_position(const struct fb_huffman* huffman) {
  const uint8_t* raw = huffman->raw;
  for (int64_t bytes = bits_left(huffman) / 8; bytes > 0; bytes--) {
    raw -= raw[-1] == 0 && raw[-2] == 0xff ? 2 : 1;
  }
  return raw;
}
