#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace w5xde {

// A script for bash that completes this program's commands, their flags, and values that are known (`only` in
// command.h); everything else is completed as files.
std::string bash_completion(const CLI::App& program);

}  // namespace w5xde
