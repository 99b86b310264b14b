// Images of a batch mixed with each other, in their slots: rust/codec/src/mix.rs.
//
// | function    | CPU reference | rounding                                            |
// |-------------|---------------|-----------------------------------------------------|
// | fb_blended  | floats, halves| to the elements' type after each operation, to even |
// | fb_mix_ring | ring          | none                                                |
//
// Floats of 16 bits are widened and narrowed by integers, the same on every device and on the host.
// Compile with --fmad=false (-ffp-contract=off).
#ifndef FOREBAY_KERNELS_MIX_H
#define FOREBAY_KERNELS_MIX_H

#include "render.h"

struct FbHalf {
  fb_u16 bits;
};

struct FbBrain {
  fb_u16 bits;
};

FB_DEVICE float fb_widened(float value) { return value; }

FB_DEVICE float fb_widened(FbBrain value) {
  return fb_float_of(static_cast<fb_u32>(value.bits) << 16);
}

FB_DEVICE float fb_widened(FbHalf value) {
  const fb_u32 sign = static_cast<fb_u32>(value.bits & 0x8000) << 16;
  const fb_u32 bits = static_cast<fb_u32>(value.bits & 0x7fff) << 13;
  const fb_u32 exponent = bits & 0x0f800000;
  if (exponent == 0) {  // a multiple of the smallest one, 2^-24
    return fb_float_of(
        sign | fb_bits_of(static_cast<float>(value.bits & 0x7fff) * 5.9604644775390625e-8f));
  }
  const fb_u32 bias = exponent == 0x0f800000 ? (255 - 31) << 23 : (127 - 15) << 23;
  return fb_float_of(sign | (bits + bias));
}

FB_DEVICE void fb_narrow(float value, float* out) { *out = value; }

FB_DEVICE void fb_narrow(float value, FbBrain* out) {
  const fb_u32 bits = fb_bits_of(value);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  const fb_u32 rounded = is_nan ? bits | 0x00400000 : bits + 0x7fff + (bits >> 16 & 1);
  out->bits = static_cast<fb_u16>(rounded >> 16);
}

FB_DEVICE void fb_narrow(float value, FbHalf* out) {
  const fb_u32 sign = fb_bits_of(value) >> 16 & 0x8000;
  const fb_u32 bits = fb_bits_of(value) & 0x7fffffff;
  fb_u32 half;
  if (bits > 0x7f800000) {
    half = 0x7e00 | (bits >> 13 & 0x3ff);
  } else if (bits >= 0x47800000) {
    half = 0x7c00;
  } else if (bits < 0x38800000) {  // added to 0.5, its last bits are multiples of 2^-24
    half = fb_bits_of(fb_float_of(bits) + 0.5f) - 0x3f000000;
  } else {
    half = (bits - ((127 - 15) << 23) + 0xfff + (bits >> 13 & 1)) >> 13;
  }
  out->bits = static_cast<fb_u16>(sign | half);
}

template <class Element>
FB_DEVICE Element fb_rounded(float value) {
  Element element;
  fb_narrow(value, &element);
  return element;
}

template <class Element>
FB_DEVICE Element fb_blended(Element own, Element other, const fb_mixing& mix) {
  const Element first = fb_rounded<Element>(fb_widened(other) * mix.other);
  const Element second = fb_rounded<Element>(fb_widened(own) * mix.image);
  return fb_rounded<Element>(fb_widened(first) + fb_widened(second));
}

// Element `place` of every slot with that of the one before it, the first one's with the last's.
template <class Element, class With>
FB_DEVICE void fb_mix_ring(const fb_mixing& mix, fb_u64 place, With with) {
  Element* later = nullptr;
  Element own = Element();
  Element last = Element();
  for (fb_u32 slot = mix.slots; slot-- > 0;) {
    if ((mix.taken[slot / 32] >> slot % 32 & 1) == 0) {
      continue;
    }
    Element* here = reinterpret_cast<Element*>(mix.address + slot * mix.pitch) + place;
    const Element value = *here;
    if (later == nullptr) {
      last = value;
    } else {
      *later = with(own, value);
    }
    later = here;
    own = value;
  }
  if (later != nullptr) {
    *later = with(own, last);
  }
}

template <class Element>
FB_DEVICE void fb_mix_blend(const fb_mixing& mix, fb_u64 place) {
  fb_mix_ring<Element>(mix, place,
                       [&](Element own, Element other) { return fb_blended(own, other, mix); });
}

template <class Element>
FB_DEVICE void fb_mix_paste(const fb_mixing& mix, fb_u64 index) {
  const fb_u64 row = index / mix.run;
  const fb_u64 line = row / mix.rows * mix.height + mix.top + row % mix.rows;
  const fb_u64 place = line * mix.line + mix.left + index % mix.run;
  fb_mix_ring<Element>(mix, place, [](Element, Element other) { return other; });
}

FB_DEVICE void fb_mix_element(const fb_mixing& mix, fb_u64 index) {
  switch (mix.kind) {
    case FB_MIX_BLEND_FLOAT32: fb_mix_blend<float>(mix, index); break;
    case FB_MIX_BLEND_FLOAT16: fb_mix_blend<FbHalf>(mix, index); break;
    case FB_MIX_BLEND_BFLOAT16: fb_mix_blend<FbBrain>(mix, index); break;
    case FB_MIX_PASTE_1: fb_mix_paste<fb_u8>(mix, index); break;
    case FB_MIX_PASTE_2: fb_mix_paste<fb_u16>(mix, index); break;
    default: fb_mix_paste<fb_u32>(mix, index);
  }
}

#endif
