#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace w5xde {

// A temporary folder of this process. The destructor removes it.
class Scratch {
 public:
  explicit Scratch(const std::string& what)
      : path(std::filesystem::temp_directory_path() / fmt::format("w5xde-{}-{}", what, getpid())) {
    std::filesystem::create_directories(path);
  }
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path path;
};

}  // namespace w5xde
