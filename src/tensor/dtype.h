#pragma once

#include <cstdint>
#include <string_view>

#include "w5xde/dtype.h"
#include "w5xde/result.h"

namespace w5xde {

// From the name that name_of gives: "f32", "bool", …
Result<DType> parse_dtype(std::string_view name);

// From a peer's byte.
Result<DType> dtype_from_wire(std::uint8_t number);

}  // namespace w5xde
