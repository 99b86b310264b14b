// Bits of a chunk of a JPEG's entropy-coded data, without stuffing.
#ifndef FOREBAY_KERNELS_BITS_H
#define FOREBAY_KERNELS_BITS_H

#include "scan.h"

// Behind the end of the data, or a marker, come zeros.
class FbBits {
 public:
  // `slack`: bits by which the last code reaches beyond the chunk.
  FB_DEVICE FbBits(const fb_scan& scan, fb_u32 chunk, fb_u32 slack)
      : words_(reinterpret_cast<const fb_u32*>(scan.data)), bytes_(scan.bytes), slack_(slack) {
    word_ = chunk * (scan.chunk_bytes / 4);
    boundary_ = word_ + scan.chunk_bytes / 4;
    skip_ = scan.skip;
    if (chunk > 0) {
      // Stuffing belongs to the byte before it.
      const bool is_stuffed = load(word_ - 1) >> 24 == 0xff && (load(word_) & 0xff) == 0;
      skip_ = is_stuffed ? 1 : 0;
    }
    plain_ = boundary_ < bytes_ / 4 ? boundary_ : bytes_ / 4;
    ahead_ = load(word_);
    fill();
  }

  FB_DEVICE fb_u32 top() const { return static_cast<fb_u32>(bits_ >> 32); }

  // At least 32 bits: a code of at most 16, and a value of at most 15.
  FB_DEVICE void fill() {
    if (count_ >= 32) {
      return;
    }
    const fb_u32 word = fb_swap(ahead_);
    const fb_u32 has_ones = (~word - 0x01010101u) & word & 0x80808080u;
    if (word_ < plain_ && (has_ones | skip_) == 0) {
      bits_ |= static_cast<fb_u64>(word) << (32 - count_);
      count_ += 32;
      word_++;
      ahead_ = load(word_);
      return;
    }
    do {
      fill_by_bytes();
    } while (count_ < 32);
  }

  FB_DEVICE void drop(fb_u32 length) {
    bits_ <<= length;
    count_ -= static_cast<fb_i32>(length);
  }

  // All codes that begin in the chunk have been taken.
  FB_DEVICE bool is_through() const { return count_ <= beyond_; }
  // Bits of the next chunk that have been taken; kFbNone if there is no next one.
  FB_DEVICE fb_u32 overshoot() const {
    return is_last_ ? kFbNone : static_cast<fb_u32>(beyond_ - count_);
  }
  // The last code took bits that the data does not have.
  FB_DEVICE bool is_past_the_end() const { return count_ < padding_; }

 private:
  const fb_u32* words_;
  fb_u32 bytes_;  // 0 behind the end of the data
  fb_u32 slack_;
  fb_u32 word_;      // the next one's number
  fb_u32 boundary_;  // that of the first one of the next chunk
  fb_u32 plain_;     // words before this one are whole, and of the chunk
  fb_u32 skip_;      // bytes of the next word that are none of the data
  fb_u32 ahead_;     // the next word, as it lies in memory: swapping it waits for its load
  fb_u64 bits_ = 0;
  fb_i32 count_ = 0;         // how many of `bits_`, from the top, are valid
  fb_i32 beyond_ = kBefore;  // and of these, how many lie beyond the chunk and the slack
  fb_i32 padding_ = 0;       // and beyond the data
  bool is_last_ = false;     // the data ends in this chunk

  static constexpr fb_i32 kBefore = -(1 << 20);

  // Whole words: the host leaves room behind a file.
  FB_DEVICE fb_u32 load(fb_u32 word) const {
    return word * 4 < bytes_ ? fb_load(words_ + word) : 0;
  }

  FB_DEVICE void add(fb_u32 byte) {
    bits_ |= static_cast<fb_u64>(byte) << (56 - count_);
    count_ += 8;
    beyond_ += beyond_ > kBefore ? 8 : 0;
  }

  // The next word, where it needs a closer look.
  FB_DEVICE void fill_by_bytes() {
    const fb_u32 first = word_ * 4;
    if (word_ == boundary_ && beyond_ == kBefore && first + skip_ < bytes_) {
      beyond_ = -static_cast<fb_i32>(slack_);
    }
    const fb_u32 word = ahead_;
    word_++;
    ahead_ = load(word_);
    fb_u32 i = skip_;
    skip_ = 0;
    for (; i < 4; i++) {
      const fb_u32 byte = word >> 8 * i & 0xff;
      const fb_u32 next = (i < 3 ? word >> (8 * i + 8) : ahead_) & 0xff;
      const bool is_escape = byte == 0xff;
      if (first + i >= bytes_ || (is_escape && (next != 0 || first + i + 1 >= bytes_))) {
        end();
        return;
      }
      add(byte);
      if (is_escape && i == 3) {
        skip_ = 1;
      }
      i += is_escape ? 1 : 0;
    }
  }

  // Zeros from here on.
  FB_DEVICE void end() {
    if (bytes_ > 0) {
      bytes_ = 0;
      plain_ = 0;
      is_last_ = beyond_ == kBefore;
      beyond_ = is_last_ ? 0 : beyond_;
    }
    padding_ += 64 - count_;
    beyond_ += 64 - count_;
    count_ = 64;
  }
};

#endif
