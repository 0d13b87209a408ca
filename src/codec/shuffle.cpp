#include "codec/shuffle.h"

#include <bit>
#include <cassert>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace w5xde {

namespace {

// Elements and planes are the two sides of the transposition: element e is bytes e * width … of one, and byte
// e of each plane of the other. Blocks of 16 elements go through the vector unit, the rest one byte at a
// time.

#if defined(__SSE2__)

constexpr std::size_t kBlockElements = sizeof(__m128i);

// A block is `width` registers. Number its bytes through, 4 + log2(width) bits each: interleaving the first
// half of the registers with the second rotates every byte's number left by one bit. Transposing rotates by
// the whole of one field, so it is the same step repeated: 4 times towards planes, log2(width) times back.
template <std::size_t width, int times>
void interleave(__m128i (&block)[width]) {
  for (int time = 0; time < times; ++time) {
    __m128i next[width];
    for (std::size_t i = 0; i < width / 2; ++i) {
      next[2 * i] = _mm_unpacklo_epi8(block[i], block[i + width / 2]);
      next[2 * i + 1] = _mm_unpackhi_epi8(block[i], block[i + width / 2]);
    }
    for (std::size_t i = 0; i < width; ++i) block[i] = next[i];
  }
}

#endif

template <std::size_t width>
void to_planes(const std::byte* elements, std::byte* planes, std::size_t count) {
  std::size_t element = 0;
#if defined(__SSE2__)
  for (; element + kBlockElements <= count; element += kBlockElements) {
    __m128i block[width];
    const auto* from = reinterpret_cast<const __m128i*>(elements + element * width);
    for (std::size_t i = 0; i < width; ++i) block[i] = _mm_loadu_si128(from + i);
    interleave<width, 4>(block);
    for (std::size_t i = 0; i < width; ++i)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(planes + i * count + element), block[i]);
  }
#endif
  for (; element < count; ++element)
    for (std::size_t i = 0; i < width; ++i) planes[i * count + element] = elements[element * width + i];
}

template <std::size_t width>
void to_elements(const std::byte* planes, std::byte* elements, std::size_t count) {
  std::size_t element = 0;
#if defined(__SSE2__)
  for (; element + kBlockElements <= count; element += kBlockElements) {
    __m128i block[width];
    for (std::size_t i = 0; i < width; ++i)
      block[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(planes + i * count + element));
    interleave<width, std::countr_zero(width)>(block);
    auto* to = reinterpret_cast<__m128i*>(elements + element * width);
    for (std::size_t i = 0; i < width; ++i) _mm_storeu_si128(to + i, block[i]);
  }
#endif
  for (; element < count; ++element)
    for (std::size_t i = 0; i < width; ++i) elements[element * width + i] = planes[i * count + element];
}

// Transposes with the function for the width; what is no whole element is copied.
using Transpose = void (*)(const std::byte* from, std::byte* to, std::size_t count);
void transpose(Bytes from, std::size_t width, MutableBytes to, Transpose by2, Transpose by4, Transpose by8) {
  assert(from.size() == to.size());
  const Transpose by_width = width == 2 ? by2 : width == 4 ? by4 : width == 8 ? by8 : nullptr;
  const std::size_t count = by_width == nullptr ? 0 : from.size() / width;
  if (by_width != nullptr) by_width(from.data(), to.data(), count);
  const std::size_t done = count * width;
  if (done < from.size()) std::memcpy(to.data() + done, from.data() + done, from.size() - done);
}

}  // namespace

void shuffle(Bytes from, std::size_t width, MutableBytes to) {
  transpose(from, width, to, to_planes<2>, to_planes<4>, to_planes<8>);
}

void unshuffle(Bytes from, std::size_t width, MutableBytes to) {
  transpose(from, width, to, to_elements<2>, to_elements<4>, to_elements<8>);
}

}  // namespace w5xde
