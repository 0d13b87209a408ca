// Named ways to transport: the generations of the original WIIIIIDE's history, so that anyone can see what
// each idea is worth, and those that measure and decide.
#pragma once

#include <span>
#include <string_view>

#include "run/transport.h"
#include "w5xde/result.h"

namespace w5xde {

std::span<const std::string_view> preset_names();
Result<Transport> preset(std::string_view name);

}  // namespace w5xde
