#pragma once

#include <filesystem>
#include <string>

namespace w5xde {

// A folder of this process's own for what it writes on the way; it goes with this.
class Scratch {
 public:
  explicit Scratch(const std::string& what);
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path path;
};

}  // namespace w5xde
