#include "forecast/link_speed.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <span>
#include <string>

#include "base/errors.h"

namespace w5xde {

namespace {

struct Unit {
  std::string_view name;
  double factor;
};
constexpr Unit kRates[] = {{"kbit", 1e3 / 8},   {"mbit", 1e6 / 8},   {"gbit", 1e9 / 8}, {"kbit/s", 1e3 / 8},
                           {"mbit/s", 1e6 / 8}, {"gbit/s", 1e9 / 8}, {"kbps", 1e3 / 8}, {"mbps", 1e6 / 8},
                           {"gbps", 1e9 / 8},   {"kb/s", 1e3},       {"mb/s", 1e6},     {"gb/s", 1e9}};
constexpr Unit kDelays[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};

// A number and its unit.
std::optional<double> quantity(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  std::string name(end, text.data() + text.size());
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto unit = std::ranges::find(units, name, &Unit::name);
  if (unit == units.end()) return std::nullopt;
  return number * unit->factor;
}

}  // namespace

Result<LinkSpeed> parse_link_speed(std::string_view text) {
  if (text == "loopback") return LinkSpeed();
  const std::size_t comma = text.find(',');
  const auto rate = quantity(text.substr(0, comma), kRates);
  const auto delay = comma == std::string_view::npos ? 0 : quantity(text.substr(comma + 1), kDelays);
  // Finite, too: "inf" is a number.
  if (!rate || !delay || !(*rate >= 1 && *rate <= 1e15) || !(*delay >= 0 && *delay <= 3600)) {
    return invalid(
        "--link {}: say a rate and the round trip, as 100mbit,40ms or 12MB/s,0.5ms; or 1gbit alone; or "
        "loopback",
        text);
  }
  return LinkSpeed{*rate, *delay};
}

}  // namespace w5xde
