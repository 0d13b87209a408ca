// Fewer bits for each float: fp16, bf16, int8, onebit.
#include "codec/gradient_stages.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "tensor/half.h"

namespace w5xde::gradient {

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// The largest magnitude; NaN when one of them is no number.
float magnitude_of(std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values)
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7fffffffu);
  return largest < 0x7f800000u ? std::bit_cast<float>(largest) : kNan;
}

// Writes a chunk at a time: its scale, then its values, `bytes_of(count)` of them.
template <class BytesOf, class EncodeChunk>
void encode_chunks(std::span<const float> values, Out& out, BytesOf bytes_of, EncodeChunk encode_chunk) {
  std::size_t total = 0;
  for (std::size_t first = 0; first < values.size(); first += kChunk)
    total += bytes_of(std::min(kChunk, values.size() - first));
  std::size_t at = out.size();
  out.resize(at + total);
  for (std::size_t first = 0; first < values.size(); first += kChunk) {
    const auto chunk = values.subspan(first, std::min(kChunk, values.size() - first));
    encode_chunk(chunk, out.data() + at);
    at += bytes_of(chunk.size());
  }
}

template <class BytesOf, class DecodeChunk>
Status decode_chunks(Bytes encoded, std::span<float> values, BytesOf bytes_of, DecodeChunk decode_chunk) {
  std::size_t at = 0;
  for (std::size_t first = 0; first < values.size(); first += kChunk) {
    const auto chunk = values.subspan(first, std::min(kChunk, values.size() - first));
    const std::size_t bytes = bytes_of(chunk.size());
    if (encoded.size() - at < bytes) return corrupt("a gradient that ends too early");
    decode_chunk(encoded.data() + at, chunk);
    at += bytes;
  }
  if (at != encoded.size()) return corrupt("a gradient that is too long");
  return {};
}

constexpr auto kFp16Bytes = [](std::size_t count) { return sizeof(float) + count * sizeof(std::uint16_t); };
constexpr auto kInt8Bytes = [](std::size_t count) { return sizeof(float) + count; };
constexpr auto kOnebitBytes = [](std::size_t count) { return 2 * sizeof(float) + (count + 7) / 8; };

}  // namespace

// Scaled by a power of two, which loses nothing, so that a chunk uses all of half's range.
void encode_fp16(std::span<const float> values, Out& out) {
  encode_chunks(values, out, kFp16Bytes, [](std::span<const float> chunk, std::byte* to) {
    const float largest = magnitude_of(chunk);
    int exponent = 0;
    if (largest > 0) (void)std::frexp(largest, &exponent);
    // The largest becomes 2^14 … 2^15; a scale that is no normal number would lose what it scales.
    exponent = std::clamp(exponent - 15, -126, 126);
    const float scale = std::isnan(largest) ? kNan : std::ldexp(1.0f, exponent);
    const float inverse = std::isnan(largest) ? kNan : std::ldexp(1.0f, -exponent);
    store(to, scale);
    std::array<float, kChunk> scaled;
    for (std::size_t i = 0; i < chunk.size(); ++i) scaled[i] = chunk[i] * inverse;
    std::array<std::uint16_t, kChunk> halves;
    convert_f32_to_f16(std::span(scaled).first(chunk.size()), std::span(halves).first(chunk.size()));
    std::memcpy(to + sizeof(float), halves.data(), chunk.size() * sizeof(std::uint16_t));
  });
}

Status decode_fp16(Bytes encoded, std::span<float> values) {
  return decode_chunks(encoded, values, kFp16Bytes, [](const std::byte* from, std::span<float> chunk) {
    const auto scale = load<float>(from);
    std::array<std::uint16_t, kChunk> halves;
    std::memcpy(halves.data(), from + sizeof(float), chunk.size() * sizeof(std::uint16_t));
    convert_f16_to_f32(std::span(halves).first(chunk.size()), chunk);
    for (float& value : chunk) value *= scale;
  });
}

void encode_bf16(std::span<const float> values, Out& out) {
  const std::size_t at = out.size();
  out.resize(at + values.size() * sizeof(std::uint16_t));
  // Rounding up the largest floats of all would make them infinite.
  constexpr std::uint32_t kLargest = 0x7f7f0000u;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const bool too_large = magnitude > kLargest && magnitude < 0x7f800000u;
    const float value = too_large ? std::bit_cast<float>((bits & 0x80000000u) | kLargest) : values[i];
    store(out.data() + at + i * sizeof(std::uint16_t), bf16_from_f32(value));
  }
}

Status decode_bf16(Bytes encoded, std::span<float> values) {
  if (encoded.size() != values.size() * sizeof(std::uint16_t)) return corrupt("a gradient of another length");
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = f32_from_bf16(load<std::uint16_t>(encoded.data() + i * sizeof(std::uint16_t)));
  return {};
}

void encode_int8(std::span<const float> values, Out& out) {
  encode_chunks(values, out, kInt8Bytes, [](std::span<const float> chunk, std::byte* to) {
    const float largest = magnitude_of(chunk);
    const float scale = largest / 127;
    store(to, scale);
    // Of a chunk of subnormals little is left to scale by; it arrives as zeros, and feedback has the rest.
    const float inverse = scale > 0 && std::isfinite(1 / scale) ? 1 / scale : 0;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const float scaled = std::isnan(largest) ? 0 : std::clamp(chunk[i] * inverse, -127.0f, 127.0f);
      to[sizeof(float) + i] = static_cast<std::byte>(static_cast<std::int8_t>(std::nearbyint(scaled)));
    }
  });
}

Status decode_int8(Bytes encoded, std::span<float> values) {
  return decode_chunks(encoded, values, kInt8Bytes, [](const std::byte* from, std::span<float> chunk) {
    const auto scale = load<float>(from);
    for (std::size_t i = 0; i < chunk.size(); ++i)
      chunk[i] = static_cast<float>(load<std::int8_t>(from + sizeof(float) + i)) * scale;
  });
}

// A chunk is its signs, and the mean of those above zero and of those that are not.
void encode_onebit(std::span<const float> values, Out& out) {
  encode_chunks(values, out, kOnebitBytes, [](std::span<const float> chunk, std::byte* to) {
    double sums[2] = {};
    std::size_t counts[2] = {};
    std::byte* bits = to + 2 * sizeof(float);
    std::memset(bits, 0, (chunk.size() + 7) / 8);
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const std::size_t above = chunk[i] > 0 ? 1 : 0;
      sums[above] += static_cast<double>(chunk[i]);
      ++counts[above];
      bits[i / 8] |= static_cast<std::byte>(above << (i % 8));
    }
    for (const std::size_t above : {0u, 1u}) {
      const double mean = counts[above] == 0 ? 0 : sums[above] / static_cast<double>(counts[above]);
      store(to + above * sizeof(float), static_cast<float>(mean));
    }
  });
}

Status decode_onebit(Bytes encoded, std::span<float> values) {
  return decode_chunks(encoded, values, kOnebitBytes, [](const std::byte* from, std::span<float> chunk) {
    const float means[2] = {load<float>(from), load<float>(from + sizeof(float))};
    const std::byte* bits = from + 2 * sizeof(float);
    for (std::size_t i = 0; i < chunk.size(); ++i)
      chunk[i] = means[std::to_integer<unsigned>(bits[i / 8]) >> (i % 8) & 1u];
  });
}

}  // namespace w5xde::gradient
