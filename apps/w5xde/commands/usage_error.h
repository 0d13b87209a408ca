#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "w5xde/result.h"

namespace w5xde {

// What is wrong with a command line that CLI11 refused, and what to type: `words` is that line without the
// program's name, `app` what has parsed it.
Error usage_error(const CLI::App& app, const CLI::ParseError& refusal, const std::vector<std::string>& words);

}  // namespace w5xde
