#include "support/hex.h"

#include <fmt/format.h>

namespace w5xde {

std::string hex_of(Bytes bytes) {
  std::string hex;
  for (const std::byte byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
  return hex;
}

}  // namespace w5xde
