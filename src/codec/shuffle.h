// Byte shuffle: all first bytes of a row of numbers, then all second bytes, and so on. The signs and
// exponents of neighbouring floats are alike and their low mantissa bytes are noise; apart from each other
// the former compress well.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"

namespace w5xde {

// 0 stands for "not shuffled".
constexpr bool is_shuffle_width(std::uint8_t width) {
  return width == 0 || width == 2 || width == 4 || width == 8;
}

// `from` is a row of elements of `width` bytes; a last element that is not whole is copied through at the
// end. `to` is as long as `from` and does not overlap it. Widths other than 2, 4 and 8 copy.
void shuffle(Bytes from, std::size_t width, MutableBytes to);

// The way back.
void unshuffle(Bytes from, std::size_t width, MutableBytes to);

}  // namespace w5xde
