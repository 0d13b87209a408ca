#pragma once

#include <cstdint>
#include <string>

namespace w5xde {

// 60,000
std::string grouped(std::uint64_t value);

}  // namespace w5xde
