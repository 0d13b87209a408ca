#pragma once

#include <string_view>

namespace w5xde {

inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace w5xde
