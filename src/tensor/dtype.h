#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "w5xde/result.h"

namespace w5xde {

// The numbers are part of the wire format.
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

// Every dtype, in the order of its number.
std::span<const DType> all_dtypes();

std::size_t size_of(DType dtype);
std::string_view name_of(DType dtype);

// From the name that name_of gives: "f32", "bool", …
Result<DType> parse_dtype(std::string_view name);

// From a peer's byte.
Result<DType> dtype_from_wire(std::uint8_t number);

}  // namespace w5xde
