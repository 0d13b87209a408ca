#include "commands/figure_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace w5xde {

namespace {

constexpr const char* kDash = "–";
// No figure of ours is larger, and doubles of that size lose digits.
constexpr double kLargest = 1e15;

bool tellable(double value) {
  return std::isfinite(value) && std::abs(value) < kLargest;
}

}  // namespace

std::string count_text(double value) {
  if (!tellable(value)) return kDash;
  std::string text = fmt::format("{:.0f}", std::abs(value));
  for (std::size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return value <= -0.5 ? "-" + text : text;
}

std::string decimal_text(double value, int decimals) {
  return tellable(value) ? fmt::format("{:.{}f}", value, decimals) : kDash;
}

std::string percent_text(double share, int decimals) {
  return tellable(share) ? fmt::format("{:.{}f} %", share * 100, decimals) : kDash;
}

std::string size_text(double bytes) {
  constexpr std::array kUnits = {"B", "KB", "MB", "GB", "TB", "PB"};
  if (!tellable(bytes)) return kDash;
  std::size_t unit = 0;
  while (bytes >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{:.{}f} {}", bytes, unit == 0 || bytes >= 99.95 ? 0 : 1, kUnits[unit]);
}

std::string rate_text(double bytes_per_second) {
  return tellable(bytes_per_second) ? size_text(bytes_per_second) + "/s" : kDash;
}

std::string clock_text(double seconds) {
  if (!tellable(seconds)) return kDash;
  const auto whole = static_cast<std::uint64_t>(std::llround(std::max(seconds, 0.0)));
  if (whole >= 3600) return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

std::string span_text(double seconds) {
  if (!tellable(seconds)) return kDash;
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return seconds < 172'800 ? fmt::format("{:.0f} h", seconds / 3600)
                           : fmt::format("{:.0f} days", seconds / 86'400);
}

std::size_t columns_of(std::string_view text) {
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xc0u) != 0x80u; };
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_character));
}

}  // namespace w5xde
