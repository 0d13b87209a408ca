#pragma once

#include <filesystem>

namespace w5xde {

// What the program exits with; docs/errors.md lists them.
enum ExitCode : int {
  kSuccess = 0,
  kUsage = 2,   // the command line makes no sense
  kFailed = 3,  // it made sense and did not work out
};

// w5xde inspect FILE: what a safetensors file holds.
ExitCode inspect(const std::filesystem::path& file);

}  // namespace w5xde
