// The inverse DCT of a JPEG's blocks, bit for bit libjpeg-turbo's accurate one (jidctint.c and its
// SIMD): Loeffler, Ligtenberg and Moschytz, "Practical Fast 1-D DCT Algorithms with 11
// Multiplications", ICASSP 1989; 13 fractional bits, columns first.
#ifndef FOREBAY_KERNELS_IDCT_H
#define FOREBAY_KERNELS_IDCT_H

#include "pixel.h"

// Eight values, a column's or a row's, and how far apart those of the block lie.
struct FbLine {
  fb_i32* values;
  fb_i32 step;

  FB_DEVICE fb_i32& operator[](fb_i32 i) const { return values[i * step]; }
};

// SIMD adds in 16 bits; no file that an encoder wrote comes near their ends.
FB_DEVICE fb_i32 fb_add16(fb_i32 a, fb_i32 b) { return static_cast<fb_i16>(a + b); }

FB_DEVICE fb_i32 fb_saturate16(fb_i32 value) { return fb_clamp(value, -32768, 32767); }

// Products and sums wrap as in 32 bits.
FB_DEVICE fb_u32 fb_times(fb_i32 value, fb_i32 constant) {
  return static_cast<fb_u32>(value) * static_cast<fb_u32>(constant);
}

// Rounds half up at `bits` fractional bits.
FB_DEVICE fb_i32 fb_descale(fb_u32 value, fb_i32 bits) {
  return static_cast<fb_i32>(value + (1u << (bits - 1))) >> bits;
}

// One dimension, in place.
FB_DEVICE void fb_inverse_dct(FbLine line, fb_i32 bits) {
  const fb_i32 in0 = line[0], in1 = line[1], in2 = line[2], in3 = line[3];
  const fb_i32 in4 = line[4], in5 = line[5], in6 = line[6], in7 = line[7];
  // Even part.
  const fb_u32 z1 = fb_times(in2, 4433) + fb_times(in6, 4433);
  const fb_u32 even2 = z1 + fb_times(in6, -15137);
  const fb_u32 even3 = z1 + fb_times(in2, 6270);
  const fb_u32 even0 = static_cast<fb_u32>(fb_add16(in0, in4)) << 13;
  const fb_u32 even1 = static_cast<fb_u32>(fb_add16(in0, -in4)) << 13;
  // Odd part.
  const fb_i32 sum73 = fb_add16(in7, in3), sum51 = fb_add16(in5, in1);
  const fb_u32 z5 = fb_times(sum73, 9633) + fb_times(sum51, 9633);
  const fb_u32 z3 = z5 + fb_times(sum73, -16069);
  const fb_u32 z4 = z5 + fb_times(sum51, -3196);
  const fb_u32 z71 = fb_times(in7, -7373) + fb_times(in1, -7373);
  const fb_u32 z53 = fb_times(in5, -20995) + fb_times(in3, -20995);
  const fb_u32 odd0 = fb_times(in7, 2446) + z71 + z3;
  const fb_u32 odd1 = fb_times(in5, 16819) + z53 + z4;
  const fb_u32 odd2 = fb_times(in3, 25172) + z53 + z3;
  const fb_u32 odd3 = fb_times(in1, 12299) + z71 + z4;
  line[0] = fb_descale(even0 + even3 + odd3, bits);
  line[7] = fb_descale(even0 + even3 - odd3, bits);
  line[1] = fb_descale(even1 + even2 + odd2, bits);
  line[6] = fb_descale(even1 + even2 - odd2, bits);
  line[2] = fb_descale(even1 - even2 + odd1, bits);
  line[5] = fb_descale(even1 - even2 - odd1, bits);
  line[3] = fb_descale(even0 - even3 + odd0, bits);
  line[4] = fb_descale(even0 - even3 - odd0, bits);
}

// Four coefficients at once.
struct alignas(8) FbFour {
  fb_i16 values[4];
};

// One thread a block: 64 coefficients to eight rows of eight samples.
FB_DEVICE void fb_block_to_samples(const fb_blocks& blocks, fb_u32 index) {
  const FbFour* coefficients = reinterpret_cast<const FbFour*>(blocks.coefficients) + 16ull * index;
  fb_i32 block[64];
  fb_i32 below = 0;  // not zero if any coefficient below the first row is not
  FB_UNROLL
  for (fb_i32 four = 0; four < 16; four++) {
    const FbFour given = coefficients[four];
    FB_UNROLL
    for (fb_i32 i = 0; i < 4; i++) {
      const fb_i32 step = blocks.quantisation[4 * four + i];
      block[4 * four + i] = static_cast<fb_i16>(given.values[i] * step);
      below |= four < 2 ? 0 : given.values[i];
    }
  }
  if (below == 0) {
    // As SIMD does, which wraps where the full computation is cut off.
    FB_UNROLL
    for (fb_i32 i = 63; i >= 0; i--) {
      block[i] = static_cast<fb_i16>(block[i % 8] * 4);
    }
  } else {
    FB_UNROLL
    for (fb_i32 column = 0; column < 8; column++) {
      fb_inverse_dct({block + column, 8}, 13 - 2);
      FB_UNROLL
      for (fb_i32 row = 0; row < 8; row++) {
        block[8 * row + column] = fb_saturate16(block[8 * row + column]);
      }
    }
  }
  const fb_u64 top = static_cast<fb_u64>(index / blocks.across) * 8;
  fb_u8* rows = reinterpret_cast<fb_u8*>(blocks.samples + top * blocks.pitch) +
                8ull * (index % blocks.across);
  FB_UNROLL
  for (fb_i32 row = 0; row < 8; row++, rows += blocks.pitch) {
    fb_inverse_dct({block + 8 * row, 1}, 13 + 2 + 3);
    fb_u64 samples = 0;
    FB_UNROLL
    for (fb_i32 i = 0; i < 8; i++) {
      const fb_i32 sample = fb_clamp_u8(block[8 * row + i] + 128);
      samples |= static_cast<fb_u64>(sample) << 8 * i;
    }
    *reinterpret_cast<fb_u64*>(rows) = samples;
  }
}

#endif
