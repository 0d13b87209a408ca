#include "base/hex.h"

#include <charconv>

namespace w5xde {

std::string hex_text(Bytes bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte byte : bytes) {
    text += kDigits[static_cast<std::size_t>(byte >> 4)];
    text += kDigits[static_cast<std::size_t>(byte & std::byte{0xf})];
  }
  return text;
}

bool parse_hex(std::string_view text, MutableBytes bytes) {
  if (text.size() != 2 * bytes.size()) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* digits = text.data() + 2 * i;
    std::uint8_t value = 0;
    const auto [end, error] = std::from_chars(digits, digits + 2, value, 16);
    if (error != std::errc() || end != digits + 2) return false;
    bytes[i] = std::byte{value};
  }
  return true;
}

}  // namespace w5xde
