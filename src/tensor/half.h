// The two 16-bit floats: IEEE half (f16) and bfloat16 (bf16). Rounded to nearest, ties to even; infinities,
// signed zeros and subnormals are kept, a NaN becomes quiet. The vector code gives the scalar code's bits.
#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace w5xde {

constexpr std::uint16_t bf16_from_f32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>((nan ? bits | 0x400000u : rounded) >> 16);
}

constexpr float f32_from_bf16(std::uint16_t value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16);
}

constexpr std::uint16_t f16_from_f32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {  // NaN
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x47800000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // 65536 and up: infinity
  if (magnitude < 0x38800000u) {  // below 2^-14: subnormal in f16
    // Adding 0.5 lets the float unit shift and round: its last place is 2^-24, as f16's is.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  // Re-bias the exponent by 127 - 15, then round; a carry out of the mantissa raises the exponent.
  const std::uint32_t rounded = magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | (rounded >> 13));
}

constexpr float f32_from_f16(std::uint16_t value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value & 0x8000u) << 16;
  const std::uint32_t magnitude = value & 0x7fffu;
  if (magnitude > 0x7c00u) {  // NaN, made quiet
    return std::bit_cast<float>(sign | 0x7fc00000u | (magnitude & 0x3ffu) << 13);
  }
  if (magnitude == 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u);
  if (magnitude < 0x400u) {  // zero or subnormal: an integer count of 2^-24
    const float scaled = static_cast<float>(magnitude) * 0x1.0p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(scaled));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
}

// Whole arrays; both spans have the same length.
void convert_f32_to_f16(std::span<const float> from, std::span<std::uint16_t> to);
void convert_f16_to_f32(std::span<const std::uint16_t> from, std::span<float> to);

}  // namespace w5xde
