#include "local_pool/scratch.h"

#include <fmt/format.h>
#include <unistd.h>

namespace w5xde {

Scratch::Scratch(const std::string& what)
    : path(std::filesystem::temp_directory_path() / fmt::format("w5xde-{}-{}", what, getpid())) {
  std::filesystem::create_directories(path);
}

Scratch::~Scratch() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace w5xde
