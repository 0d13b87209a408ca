// The few floats that matter most, with their places.
#include "codec/gradient_stages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace w5xde::gradient {

namespace {

std::int32_t magnitude(float value) {
  return std::bit_cast<std::int32_t>(value) & 0x7fffffff;  // ordered as magnitudes are, NaN above all
}

// The rank-th largest; `rank` counts from 1. Radix selection, so that no input makes it slow: a digit at a
// time from the top, always with those only that share the digits before.
std::int32_t largest_of_rank(std::span<const std::int32_t> magnitudes, std::size_t rank) {
  constexpr int kDigitBits = 8;
  std::uint32_t prefix = 0;
  for (int shift = 24; shift >= 0; shift -= kDigitBits) {
    std::array<std::size_t, 1u << kDigitBits> counts = {};
    for (const std::int32_t each : magnitudes) {
      const auto bits = static_cast<std::uint32_t>(each);
      // In two steps: a shift by all 32 bits is undefined.
      if (((bits ^ prefix) >> shift >> kDigitBits) == 0) ++counts[(bits >> shift) & 0xffu];
    }
    std::uint32_t digit = 0xff;
    for (; counts[digit] < rank; --digit) rank -= counts[digit];
    prefix |= digit << shift;
  }
  return static_cast<std::int32_t>(prefix);
}

// Blocks without a float that is large enough, which are most, are passed over at the speed of memory.
constexpr std::size_t kBlock = 16;

// Bit i says whether float i of a block is of at least `least`.
#if defined(__SSE2__)
std::uint32_t large_ones(const float* block, std::int32_t least) {
  const __m128i sign = _mm_set1_epi32(0x7fffffff), below = _mm_set1_epi32(least - 1);
  const auto quarter = [&](std::size_t index) {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 4 * index));
    return _mm_cmpgt_epi32(_mm_and_si128(bits, sign), below);
  };
  return static_cast<std::uint32_t>(_mm_movemask_epi8(
      _mm_packs_epi16(_mm_packs_epi32(quarter(0), quarter(1)), _mm_packs_epi32(quarter(2), quarter(3)))));
}
#else
std::uint32_t large_ones(const float* block, std::int32_t least) {
  std::uint32_t ones = 0;
  for (std::size_t i = 0; i < kBlock; ++i) ones |= (magnitude(block[i]) >= least ? 1u : 0u) << i;
  return ones;
}
#endif

// Values this many halvings below the largest are not sent. Otherwise, where few values are left, the
// rounding error of a value that was sent would be sent again and again.
constexpr int kNegligibleBits = 16;

std::int32_t least_worth_saying(std::span<const float> values) {
  constexpr std::int32_t kBits = kNegligibleBits << 23;  // as a difference of float exponents
  std::int32_t largest = 0;
  for (const float value : values) largest = std::max(largest, magnitude(value));
  return std::max(1, largest - kBits);
}

constexpr std::uint64_t varint_bytes(std::uint64_t value) {
  return (static_cast<std::uint64_t>(std::bit_width(value | 1u)) + 6) / 7;
}

std::byte* store_varint(std::byte* to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<std::byte>(value | 0x80u);
  *to++ = static_cast<std::byte>(value);
  return to;
}

}  // namespace

void TopK::collect(std::span<const float> values, std::int32_t least) {
  places_.clear();
  magnitudes_.clear();
  const auto take = [&](std::size_t place) {
    places_.push_back(static_cast<std::uint32_t>(place));
    magnitudes_.push_back(magnitude(values[place]));
  };
  std::size_t i = 0;
  for (; i + kBlock <= values.size(); i += kBlock) {
    for (std::uint32_t ones = large_ones(&values[i], least); ones != 0; ones &= ones - 1)
      take(i + static_cast<std::size_t>(std::countr_zero(ones)));
  }
  for (; i < values.size(); ++i) {
    if (magnitude(values[i]) >= least) take(i);
  }
}

std::span<const std::uint32_t> TopK::find(std::span<const float> values, std::size_t count) {
  if (count == 0) return {};
  // A few lines of memory tell about where the border is; should they have told too much, ask again.
  constexpr std::size_t kSampleEvery = 64 * kBlock;
  sample_.clear();
  for (std::size_t i = 0; i + kBlock <= values.size(); i += kSampleEvery)
    for (std::size_t k = 0; k < kBlock; ++k) sample_.push_back(magnitude(values[i + k]));
  const double wanted =
      static_cast<double>(count) / static_cast<double>(values.size()) * static_cast<double>(sample_.size());
  auto rank = static_cast<std::size_t>(wanted + 4 * std::sqrt(wanted) + kBlock);
  const std::int32_t floor = count < values.size() ? least_worth_saying(values) : 0;
  std::int32_t border = 0;
  do {
    border = std::max(floor, rank < sample_.size() ? largest_of_rank(sample_, rank) : 0);
    collect(values, border);
    rank *= 4;
  } while (places_.size() < count && border > floor);
  if (places_.size() <= count) return places_;

  const std::int32_t least = largest_of_rank(magnitudes_, count);
  // How many of exactly that are among them.
  std::size_t ties = count;
  for (std::size_t i = 0; i < places_.size(); ++i) ties -= magnitudes_[i] > least ? 1u : 0u;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (magnitudes_[i] < least || (magnitudes_[i] == least && ties == 0)) continue;
    if (magnitudes_[i] == least) --ties;
    places_[chosen++] = places_[i];
  }
  return std::span(places_).first(chosen);
}

std::uint64_t topk_bytes_max(std::uint64_t floats, std::uint64_t count) {
  // A gap takes one byte, and another for each time that it fills 128 of the last; together they are no more
  // than there are floats.
  const std::uint64_t gaps = std::min(count * varint_bytes(floats), count + floats / 127);
  return varint_bytes(count) + gaps + count * sizeof(float);
}

std::size_t encode_topk(std::span<const float> values, std::span<const std::uint32_t> places, std::byte* to) {
  std::byte* at = store_varint(to, places.size());
  std::uint32_t next = 0;
  for (const std::uint32_t place : places) {
    at = store_varint(at, place - next);
    next = place + 1;
  }
  for (const std::uint32_t place : places) {
    store(at, values[place]);
    at += sizeof(float);
  }
  return static_cast<std::size_t>(at - to);
}

Status decode_topk(Bytes encoded, std::span<float> values) {
  ByteReader places(encoded);
  const std::uint64_t count = places.read_varint();
  if (places.exhausted() || count > values.size() || count > encoded.size() / (1 + sizeof(float))) {
    return corrupt("a sparse gradient with more floats than there are");
  }
  // The floats stand at the end, as many as places.
  ByteReader floats(encoded.last(count * sizeof(float)));
  std::ranges::fill(values, 0.0f);
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t gap = places.read_varint();
    if (places.exhausted() || gap >= values.size() - next)
      return corrupt("a sparse gradient's place is outside");
    values[next + gap] = floats.read<float>();
    next += gap + 1;
  }
  if (places.rest().size() != count * sizeof(float)) return corrupt("a sparse gradient of another length");
  return {};
}

}  // namespace w5xde::gradient
