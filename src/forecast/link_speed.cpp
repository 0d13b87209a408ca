#include "forecast/link_speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <string>

#include "base/errors.h"

namespace w5xde {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};
// In small letters, but for the B of bytes.
constexpr Unit kPrefixes[] = {{"", 1}, {"k", 1e3}, {"m", 1e6}, {"g", 1e9}};
constexpr Unit kSizes[] = {{"bit", 1.0 / 8}, {"bits", 1.0 / 8}, {"b", 1.0 / 8}, {"B", 1}};
constexpr std::string_view kPerSecond[] = {"/s", "ps"};
constexpr Unit kDelays[] = {{"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}};

struct Quantity {
  double number = 0;
  std::string unit;
};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

// A number and what follows it, in small letters but for a B.
std::optional<Quantity> quantity(std::string_view text) {
  text = trimmed(text);
  Quantity read;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read.number);
  if (error != std::errc()) return std::nullopt;
  read.unit = trimmed({end, static_cast<std::size_t>(text.data() + text.size() - end)});
  std::ranges::transform(read.unit, read.unit.begin(),
                         [](unsigned char c) { return c == 'B' ? 'B' : static_cast<char>(std::tolower(c)); });
  // "MBit" is a bit with a capital.
  if (const std::size_t bit = read.unit.find("Bit"); bit != std::string::npos) read.unit[bit] = 'b';
  return read;
}

// "mbit", "Mbit/s", "Mbps", "MB/s": bytes a second.
std::optional<double> rate_of(std::string_view text) {
  const auto read = quantity(text);
  if (!read) return std::nullopt;
  std::string_view unit = read->unit;
  bool per_second = false;
  for (const std::string_view ending : kPerSecond) {
    if (per_second || !unit.ends_with(ending)) continue;
    unit.remove_suffix(ending.size());
    per_second = true;
  }
  for (const auto& [size_name, size] : kSizes) {
    // "100mb" may be a size: only "mbit" goes without the second.
    if (!per_second && !size_name.starts_with("bit")) continue;
    for (const auto& [prefix_name, prefix] : kPrefixes) {
      if (unit == std::string(prefix_name) + std::string(size_name)) return read->number * prefix * size;
    }
  }
  return std::nullopt;
}

std::optional<double> delay_of(std::string_view text) {
  const auto read = quantity(text);
  if (!read) return std::nullopt;
  const auto unit = std::ranges::find(kDelays, read->unit, &Unit::name);
  if (unit == std::end(kDelays)) return std::nullopt;
  return read->number * unit->factor;
}

}  // namespace

Result<LinkSpeed> parse_link_speed(std::string_view text) {
  if (text == "loopback") return LinkSpeed();
  const std::size_t comma = text.find(',');
  const auto rate = rate_of(text.substr(0, comma));
  const auto delay = comma == std::string_view::npos ? 0 : delay_of(text.substr(comma + 1));
  // Finite, too: "inf" is a number.
  if (!rate || !delay || !(*rate >= 1 && *rate <= 1e15) || !(*delay >= 0 && *delay <= 3600)) {
    return invalid(
        "--link {}: say a rate and the round trip, as 100mbit,40ms or 12MB/s,0.5ms; or a rate alone, "
        "as 1gbit or \"20 Mbit/s\"; or loopback",
        text);
  }
  return LinkSpeed{*rate, *delay};
}

std::string to_string(const LinkSpeed& link) {
  if (link.loopback()) return "loopback";
  const double bits = 8 * link.bytes_per_second;
  std::string rate = bits >= 1e9   ? fmt::format("{:.4g} Gbit/s", bits / 1e9)
                     : bits >= 1e6 ? fmt::format("{:.4g} Mbit/s", bits / 1e6)
                                   : fmt::format("{:.4g} kbit/s", bits / 1e3);
  if (link.round_trip_seconds == 0) return rate;
  return fmt::format("{}, round trip {:.4g} ms", rate, link.round_trip_seconds * 1e3);
}

}  // namespace w5xde
