#include "base/printable.h"

#include <fmt/format.h>

namespace w5xde {

namespace {

constexpr std::string_view kCut = "…";

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no character begins here
};

// RFC 3629: no longer than need be, no surrogates, nothing past U+10FFFF.
Character first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 0;
  if (bytes == 0 || lead > 0xf4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0U) != 0x80U) return {};
    code = code << 6U | (byte(i) & 0x3fU);
  }
  constexpr std::uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, bytes};
}

bool is_plain(std::uint32_t code) {
  if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return false;
  const bool directs = (code >= 0x200e && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
                       (code >= 0x2066 && code <= 0x2069);
  return !directs && code != 0x2028 && code != 0x2029 && code != 0xfeff;
}

std::string escaped(std::uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\t') return "\\t";
  return code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

}  // namespace

std::string printable(std::string_view text, std::size_t bytes_max) {
  std::string safe;
  std::size_t cut_at = 0;  // up to here there is room for the sign that text was cut
  for (std::size_t at = 0; at < text.size();) {
    const Character next = first_character(text.substr(at));
    const std::size_t taken = next.bytes == 0 ? 1 : next.bytes;
    std::string piece(text.substr(at, taken));
    if (next.bytes == 0) {
      piece = fmt::format("\\x{:02x}", static_cast<std::uint8_t>(text[at]));
    } else if (!is_plain(next.code)) {
      piece = escaped(next.code);
    }
    if (safe.size() + piece.size() > bytes_max) {
      safe.resize(cut_at);
      if (bytes_max >= kCut.size()) safe += kCut;
      return safe;
    }
    safe += piece;
    if (safe.size() + kCut.size() <= bytes_max) cut_at = safe.size();
    at += taken;
  }
  return safe;
}

std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

}  // namespace w5xde
