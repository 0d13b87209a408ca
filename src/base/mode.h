#pragma once

#include <string_view>

#include "w5xde/result.h"

namespace w5xde {

// sync: a step is committed when all of its slots are in. async: every contribution is a version of its own.
enum class Mode { sync, async };

Result<Mode> parse_mode(std::string_view name);
std::string_view name_of(Mode mode);

}  // namespace w5xde
