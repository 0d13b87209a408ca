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

template <std::size_t width>
std::size_t shuffle_blocks(const std::byte* elements, std::byte* planes, std::size_t count) {
  std::size_t element = 0;
  for (; element + kBlockElements <= count; element += kBlockElements) {
    __m128i block[width];
    const auto* from = reinterpret_cast<const __m128i*>(elements + element * width);
    for (std::size_t i = 0; i < width; ++i) block[i] = _mm_loadu_si128(from + i);
    interleave<width, 4>(block);
    for (std::size_t i = 0; i < width; ++i)
      _mm_storeu_si128(reinterpret_cast<__m128i*>(planes + i * count + element), block[i]);
  }
  return element;
}

template <std::size_t width>
std::size_t unshuffle_blocks(const std::byte* planes, std::byte* elements, std::size_t count) {
  std::size_t element = 0;
  for (; element + kBlockElements <= count; element += kBlockElements) {
    __m128i block[width];
    for (std::size_t i = 0; i < width; ++i)
      block[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(planes + i * count + element));
    interleave<width, std::countr_zero(width)>(block);
    auto* to = reinterpret_cast<__m128i*>(elements + element * width);
    for (std::size_t i = 0; i < width; ++i) _mm_storeu_si128(to + i, block[i]);
  }
  return element;
}

#else

template <std::size_t width>
std::size_t shuffle_blocks(const std::byte*, std::byte*, std::size_t) {
  return 0;
}

template <std::size_t width>
std::size_t unshuffle_blocks(const std::byte*, std::byte*, std::size_t) {
  return 0;
}

#endif

template <std::size_t width>
void shuffle_elements(const std::byte* elements, std::byte* planes, std::size_t count) {
  for (std::size_t element = shuffle_blocks<width>(elements, planes, count); element < count; ++element)
    for (std::size_t i = 0; i < width; ++i) planes[i * count + element] = elements[element * width + i];
}

template <std::size_t width>
void unshuffle_elements(const std::byte* planes, std::byte* elements, std::size_t count) {
  for (std::size_t element = unshuffle_blocks<width>(planes, elements, count); element < count; ++element)
    for (std::size_t i = 0; i < width; ++i) elements[element * width + i] = planes[i * count + element];
}

void copy_from(std::size_t start, Bytes from, MutableBytes to) {
  if (start < from.size()) std::memcpy(to.data() + start, from.data() + start, from.size() - start);
}

}  // namespace

void shuffle(Bytes from, std::size_t width, MutableBytes to) {
  assert(from.size() == to.size());
  switch (width) {
    case 2:
      shuffle_elements<2>(from.data(), to.data(), from.size() / 2);
      break;
    case 4:
      shuffle_elements<4>(from.data(), to.data(), from.size() / 4);
      break;
    case 8:
      shuffle_elements<8>(from.data(), to.data(), from.size() / 8);
      break;
    default:
      return copy_from(0, from, to);
  }
  copy_from(from.size() / width * width, from, to);
}

void unshuffle(Bytes from, std::size_t width, MutableBytes to) {
  assert(from.size() == to.size());
  switch (width) {
    case 2:
      unshuffle_elements<2>(from.data(), to.data(), from.size() / 2);
      break;
    case 4:
      unshuffle_elements<4>(from.data(), to.data(), from.size() / 4);
      break;
    case 8:
      unshuffle_elements<8>(from.data(), to.data(), from.size() / 8);
      break;
    default:
      return copy_from(0, from, to);
  }
  copy_from(from.size() / width * width, from, to);
}

}  // namespace w5xde
