#include "net/address.h"

#include <fmt/format.h>

#include <charconv>

#include "base/errors.h"

namespace w5xde {

std::string Address::to_string() const {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", host, v6 ? "]" : "", port);
}

bool is_loopback(std::string_view host) {
  if (host.starts_with("127.")) return host.find_first_not_of("0123456789.:") == std::string_view::npos;
  return host == "localhost" || host == "::1" || host.starts_with("localhost:") || host.starts_with("[::1]:");
}

Result<Address> parse_address(std::string_view text) {
  const auto bad = [&] { return invalid("'{}' is not HOST:PORT, such as 192.168.1.5:5555", text); };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return bad();
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return bad();
  }
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (host.empty() || error != std::errc() || end != digits.data() + digits.size()) return bad();
  return Address{std::string(host), port};
}

}  // namespace w5xde
