#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace w5xde {

// The type of a tensor's numbers. The numbers here are part of the wire format.
enum class DType : std::uint8_t {
  f32 = 1,
  f64 = 2,
  f16 = 3,
  bf16 = 4,
  i64 = 5,
  i32 = 6,
  i16 = 7,
  i8 = 8,
  u8 = 9,
  boolean = 10,
  c64 = 11,
  c128 = 12,
};

inline constexpr std::array<DType, 12> kDTypes = {DType::f32, DType::f64,     DType::f16, DType::bf16,
                                                  DType::i64, DType::i32,     DType::i16, DType::i8,
                                                  DType::u8,  DType::boolean, DType::c64, DType::c128};

// In bytes.
constexpr std::size_t size_of(DType dtype) {
  constexpr std::array<std::size_t, kDTypes.size()> kSizes = {4, 8, 2, 2, 8, 4, 2, 1, 1, 1, 8, 16};
  return kSizes[static_cast<std::size_t>(dtype) - 1];
}

constexpr std::string_view name_of(DType dtype) {
  constexpr std::array<std::string_view, kDTypes.size()> kNames = {
      "f32", "f64", "f16", "bf16", "i64", "i32", "i16", "i8", "u8", "bool", "c64", "c128"};
  return kNames[static_cast<std::size_t>(dtype) - 1];
}

constexpr bool is_whole_number(DType dtype) {
  return dtype == DType::u8 || dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 ||
         dtype == DType::i64;
}

}  // namespace w5xde
