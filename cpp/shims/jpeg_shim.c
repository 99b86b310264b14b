#include "jpeg_shim.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* After stdio.h, whose FILE jpeglib.h needs. */
#include <jerror.h>

#include "jpeg_huffman.h"

/* Rows asked of libjpeg at once; it gives one or two (a row group) per call anyway. */
#define FB_ROWS 16

struct fb_jpeg {
  struct jpeg_decompress_struct info;
  struct jpeg_error_mgr errors;
  struct jpeg_progress_mgr progress;
  jmp_buf escape;
  int open;
  int status;
  uint32_t warnings;
  fb_jpeg_stop stop;
  const void* stop_context;
  char message[JMSG_LENGTH_MAX];
  int took_over; /* `huffman` reads the scan */
  struct fb_huffman huffman;
};

static struct fb_jpeg* owner_of(j_common_ptr info) { return (struct fb_jpeg*)info->client_data; }

static int status_of(int code) {
  switch (code) {
    case JERR_OUT_OF_MEMORY: return FB_JPEG_MEMORY;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED: return FB_JPEG_UNSUPPORTED;
    case JERR_BAD_STATE:
    case JERR_BAD_CROP_SPEC:
    case JERR_BAD_LIB_VERSION:
    case JERR_BAD_STRUCT_SIZE:
    case JERR_BUFFER_SIZE: return FB_JPEG_MISUSE;
    default: return FB_JPEG_DAMAGED;
  }
}

static void on_error(j_common_ptr info) {
  struct fb_jpeg* jpeg = owner_of(info);
  info->err->format_message(info, jpeg->message);
  jpeg->status = status_of(info->err->msg_code);
  longjmp(jpeg->escape, 1);
}

/* Levels below 0 are warnings about damage; the rest is tracing. */
static void on_message(j_common_ptr info, int level) {
  struct fb_jpeg* jpeg = owner_of(info);
  if (level >= 0) {
    return;
  }
  if (jpeg->warnings < UINT32_MAX) {
    jpeg->warnings++;
  }
}

/* FB_JPEG_OK, or why the fast reader gave up. */
static int read_mcu(struct fb_jpeg* jpeg, JBLOCKROW* blocks) {
  const enum fb_huffman_outcome outcome =
      fb_huffman_decode_mcu(&jpeg->huffman, jpeg->info.restart_interval, blocks);
  if (outcome == FB_HUFFMAN_READ) {
    return FB_JPEG_OK;
  }
  snprintf(jpeg->message, sizeof jpeg->message, "irregular Huffman data");
  return outcome == FB_HUFFMAN_IRREGULAR ? FB_JPEG_IRREGULAR : FB_JPEG_IMPOSSIBLE;
}

static boolean fast_mcu(j_decompress_ptr info, JBLOCKROW* blocks) {
  struct fb_jpeg* jpeg = owner_of((j_common_ptr)info);
  jpeg->status = read_mcu(jpeg, blocks);
  if (jpeg->status != FB_JPEG_OK) {
    longjmp(jpeg->escape, 1);
  }
  return TRUE;
}

static void print_nothing(j_common_ptr info) { (void)info; }

static void on_progress(j_common_ptr info) {
  struct fb_jpeg* jpeg = owner_of(info);
  if (jpeg->stop != NULL && jpeg->stop(jpeg->stop_context)) {
    snprintf(jpeg->message, sizeof jpeg->message, "stopped");
    jpeg->status = FB_JPEG_STOPPED;
    longjmp(jpeg->escape, 1);
  }
}

static int misuse(struct fb_jpeg* jpeg, const char* what) {
  snprintf(jpeg->message, sizeof jpeg->message, "%s", what);
  return FB_JPEG_MISUSE;
}

struct fb_jpeg* fb_jpeg_create(void) { return calloc(1, sizeof(struct fb_jpeg)); }

void fb_jpeg_destroy(struct fb_jpeg* jpeg) {
  if (jpeg != NULL) {
    fb_jpeg_close(jpeg);
    free(jpeg);
  }
}

/* The decompressor is made anew for every image (about a microsecond): a kept one would lend the
 * Huffman and quantisation tables of the image before to a file that lacks them, and pixels would
 * depend on history.
 */
int fb_jpeg_open(struct fb_jpeg* jpeg, const uint8_t* bytes, size_t len, fb_jpeg_stop stop,
                 const void* context, struct fb_jpeg_header* header) {
  fb_jpeg_close(jpeg);
  jpeg->warnings = 0;
  jpeg->message[0] = '\0';
  jpeg->stop = stop;
  jpeg->stop_context = context;

  memset(&jpeg->info, 0, sizeof jpeg->info);
  jpeg->info.err = jpeg_std_error(&jpeg->errors);
  jpeg->errors.error_exit = on_error;
  jpeg->errors.emit_message = on_message;
  jpeg->errors.output_message = print_nothing;
  jpeg->info.client_data = jpeg;
  if (setjmp(jpeg->escape)) {
    jpeg->open = 1;
    fb_jpeg_close(jpeg);
    return jpeg->status;
  }
  jpeg_create_decompress(&jpeg->info);
  jpeg->info.client_data = jpeg;
  jpeg->open = 1;
  jpeg->progress.progress_monitor = on_progress;
  jpeg->info.progress = &jpeg->progress;
  jpeg_mem_src(&jpeg->info, bytes, (unsigned long)len);
  jpeg_read_header(&jpeg->info, TRUE);

  jpeg->info.dct_method = JDCT_ISLOW;
  jpeg->info.do_fancy_upsampling = TRUE;
  if (jpeg->info.jpeg_color_space == JCS_CMYK || jpeg->info.jpeg_color_space == JCS_YCCK) {
    jpeg->info.out_color_space = JCS_CMYK;
    header->colour = FB_JPEG_CMYK;
  } else {
    jpeg->info.out_color_space = JCS_RGB;
    header->colour = FB_JPEG_RGB;
  }
  header->width = jpeg->info.image_width;
  header->height = jpeg->info.image_height;
  return FB_JPEG_OK;
}

int fb_jpeg_declare(struct fb_jpeg* jpeg, uint32_t components, int ycbcr) {
  if (!jpeg->open || (uint32_t)jpeg->info.num_components != components) {
    return misuse(jpeg, "colours of another image than was opened");
  }
  jpeg->info.jpeg_color_space = ycbcr ? JCS_YCbCr : JCS_UNKNOWN;
  jpeg->info.out_color_space = ycbcr ? JCS_RGB : JCS_UNKNOWN;
  return FB_JPEG_OK;
}

/* Fancy upsampling mixes each chroma sample with its neighbours, and a cropped row ends as if the
 * image did: one iMCU more on either side keeps the asked columns exact (PIX-1). Where scans of a
 * progressive file are missing, blocks are smoothed by those up to two away: two iMCUs more.
 */
int fb_jpeg_start(struct fb_jpeg* jpeg, uint32_t by, uint32_t x, uint32_t width, int careful,
                  struct fb_jpeg_columns* columns) {
  if (!jpeg->open) {
    return misuse(jpeg, "start without open");
  }
  if (by != 1 && by != 2 && by != 4 && by != DCTSIZE) {
    return misuse(jpeg, "a fraction other than a half, a quarter or an eighth");
  }
  jpeg->info.scale_num = 1;
  jpeg->info.scale_denom = by;
  if (setjmp(jpeg->escape)) {
    fb_jpeg_close(jpeg);
    return jpeg->status;
  }
  jpeg_start_decompress(&jpeg->info);
  const uint64_t whole = jpeg->info.output_width;
  const uint64_t step = DCTSIZE / by * (uint64_t)jpeg->info.max_h_samp_factor;
  if (width == 0 || (uint64_t)x + width > whole) {
    fb_jpeg_close(jpeg);
    return misuse(jpeg, "columns outside the image");
  }
  const uint64_t margin = jpeg->info.progressive_mode ? 3 * step : step;
  uint64_t first = x / step * step;
  first = first >= margin ? first - margin : 0;
  uint64_t end = ((uint64_t)x + width + step - 1) / step * step + margin;
  end = end < whole ? end : whole;
  JDIMENSION crop_x = (JDIMENSION)first;
  JDIMENSION crop_width = (JDIMENSION)(end - first);
  jpeg_crop_scanline(&jpeg->info, &crop_x, &crop_width);
  columns->x = crop_x;
  columns->width = crop_width;
  jpeg->took_over = !careful && fb_huffman_take_over(&jpeg->huffman, &jpeg->info, fast_mcu);
  return FB_JPEG_OK;
}

/* The MCUs of `step` pixels that hold `from` to `end` and `margin` pixels more, within `count`. */
static void window_of(uint32_t from, uint32_t end, uint32_t margin, uint32_t step, uint32_t count,
                      uint32_t* first, uint32_t* mcus) {
  *first = (from > margin ? from - margin : 0) / step;
  const uint64_t last = ((uint64_t)end + margin + step - 1) / step;
  *mcus = (uint32_t)(last < count ? last : count) - *first;
}

int fb_jpeg_start_window(struct fb_jpeg* jpeg, uint32_t x, uint32_t y, uint32_t width,
                         uint32_t height, struct fb_jpeg_window* window) {
  if (!jpeg->open) {
    return misuse(jpeg, "start without open");
  }
  if (setjmp(jpeg->escape)) {
    fb_jpeg_close(jpeg);
    return jpeg->status;
  }
  struct jpeg_decompress_struct* info = &jpeg->info;
  jpeg_start_decompress(info);
  jpeg->took_over =
      info->num_components == 3 && fb_huffman_take_over(&jpeg->huffman, info, fast_mcu);
  if (!jpeg->took_over) {
    fb_jpeg_close(jpeg);
    return FB_JPEG_IRREGULAR;
  }
  /* A sample of any component is at most that many pixels wide and high. */
  const uint32_t h = (uint32_t)info->max_h_samp_factor, v = (uint32_t)info->max_v_samp_factor;
  window_of(x, x + width, h, DCTSIZE * h, info->MCUs_per_row, &window->mcu_x, &window->mcus_across);
  window_of(y, y + height, v, DCTSIZE * v, info->MCU_rows_in_scan, &window->mcu_y,
            &window->mcus_down);
  for (int i = 0; i < 3; i++) {
    const jpeg_component_info* of = &info->comp_info[i];
    struct fb_jpeg_component* component = &window->components[i];
    component->x = window->mcu_x * (uint32_t)of->h_samp_factor;
    component->y = window->mcu_y * (uint32_t)of->v_samp_factor;
    component->across = window->mcus_across * (uint32_t)of->h_samp_factor;
    component->down = window->mcus_down * (uint32_t)of->v_samp_factor;
    memcpy(component->quantisation, of->quant_table->quantval, sizeof component->quantisation);
  }
  return FB_JPEG_OK;
}

int fb_jpeg_read_window(struct fb_jpeg* jpeg, const struct fb_jpeg_window* window, int16_t* into) {
  if (!jpeg->open || !jpeg->took_over) {
    return misuse(jpeg, "a window without a start");
  }
  const struct jpeg_decompress_struct* info = &jpeg->info;
  /* Where each block of an MCU goes, and how far the next MCU's block lies. */
  JBLOCK* places[D_MAX_BLOCKS_IN_MCU];
  ptrdiff_t right[D_MAX_BLOCKS_IN_MCU], down[D_MAX_BLOCKS_IN_MCU];
  JBLOCK* first[3] = {(JBLOCK*)into};
  for (int i = 1; i < 3; i++) {
    const struct fb_jpeg_component* before = &window->components[i - 1];
    first[i] = first[i - 1] + (size_t)before->across * before->down;
  }
  int count = 0;
  for (int i = 0; i < 3; i++) {
    const jpeg_component_info* of = info->cur_comp_info[i];
    const uint32_t across = window->components[of->component_index].across;
    for (int block = 0; block < of->h_samp_factor * of->v_samp_factor; block++, count++) {
      const int row = block / of->h_samp_factor, column = block % of->h_samp_factor;
      places[count] = first[of->component_index] + (size_t)row * across + column;
      right[count] = of->h_samp_factor;
      down[count] = (ptrdiff_t)across * of->v_samp_factor;
    }
  }
  const uint32_t end = window->mcu_x + window->mcus_across;
  for (uint32_t row = 0; row < window->mcu_y + window->mcus_down; row++) {
    if (jpeg->stop != NULL && jpeg->stop(jpeg->stop_context)) {
      return FB_JPEG_STOPPED;
    }
    for (uint32_t column = 0; column < info->MCUs_per_row; column++) {
      JBLOCKROW blocks[D_MAX_BLOCKS_IN_MCU];
      const int held = row >= window->mcu_y && column >= window->mcu_x && column < end;
      for (int i = 0; held && i < count; i++) {
        blocks[i] = places[i] + right[i] * (ptrdiff_t)(column - window->mcu_x) +
                    down[i] * (ptrdiff_t)(row - window->mcu_y);
        memset(blocks[i], 0, sizeof(JBLOCK));
      }
      const int status = read_mcu(jpeg, held ? blocks : NULL);
      if (status != FB_JPEG_OK) {
        return status;
      }
    }
  }
  return FB_JPEG_OK;
}

int fb_jpeg_skip_rows(struct fb_jpeg* jpeg, uint32_t rows) {
  if (!jpeg->open) {
    return misuse(jpeg, "skip without open");
  }
  if (setjmp(jpeg->escape)) {
    fb_jpeg_close(jpeg);
    return jpeg->status;
  }
  if (jpeg_skip_scanlines(&jpeg->info, rows) != rows) {
    fb_jpeg_close(jpeg);
    return misuse(jpeg, "skipped past the last row");
  }
  return FB_JPEG_OK;
}

int fb_jpeg_read_rows(struct fb_jpeg* jpeg, uint8_t* into, size_t stride, uint32_t rows) {
  if (!jpeg->open) {
    return misuse(jpeg, "read without open");
  }
  if (setjmp(jpeg->escape)) {
    fb_jpeg_close(jpeg);
    return jpeg->status;
  }
  const JDIMENSION first = jpeg->info.output_scanline;
  while (jpeg->info.output_scanline - first < rows) {
    JSAMPROW pointers[FB_ROWS];
    const uint32_t done = jpeg->info.output_scanline - first;
    const uint32_t count = rows - done < FB_ROWS ? rows - done : FB_ROWS;
    for (uint32_t i = 0; i < count; i++) {
      pointers[i] = into + (size_t)(done + i) * stride;
    }
    if (jpeg_read_scanlines(&jpeg->info, pointers, count) == 0) {
      fb_jpeg_close(jpeg);
      return misuse(jpeg, "read past the last row");
    }
  }
  return FB_JPEG_OK;
}

/* libjpeg's own reader holds up to eight bytes of data, and what it holds at the end it forgets
 * without a word; ours gives them back, so that a single byte too many is a warning. */
int fb_jpeg_finish(struct fb_jpeg* jpeg) {
  if (!jpeg->open) {
    return misuse(jpeg, "finish without open");
  }
  if (setjmp(jpeg->escape)) {
    fb_jpeg_close(jpeg);
    return jpeg->status;
  }
  if (jpeg->took_over) {
    struct jpeg_source_mgr* source = jpeg->info.src;
    const uint8_t* end = source->next_input_byte + source->bytes_in_buffer;
    source->next_input_byte = fb_huffman_position(&jpeg->huffman);
    source->bytes_in_buffer = (size_t)(end - source->next_input_byte);
  }
  jpeg_finish_decompress(&jpeg->info);
  return FB_JPEG_OK;
}

/* jpeg_destroy frees pools only and raises no error, so no setjmp is needed. */
void fb_jpeg_close(struct fb_jpeg* jpeg) {
  if (jpeg->open) {
    jpeg_destroy_decompress(&jpeg->info);
    jpeg->open = 0;
  }
}

const char* fb_jpeg_message(const struct fb_jpeg* jpeg) { return jpeg->message; }

#define FB_TEXT_OF(token) #token
#define FB_TEXT(macro) FB_TEXT_OF(macro)

const char* fb_jpeg_version(void) { return FB_TEXT(LIBJPEG_TURBO_VERSION); }

uint32_t fb_jpeg_warnings(const struct fb_jpeg* jpeg) { return jpeg->warnings; }
