#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "w5xde/result.h"

namespace w5xde {

struct Address {
  std::string host;
  std::uint16_t port = 0;

  std::string to_string() const;  // "127.0.0.1:5555", "[::1]:5555"
};

// Whether a host, or HOST:PORT, is this machine's own by its form.
bool is_loopback(std::string_view host);

// "HOST:PORT" or "[IPV6]:PORT".
Result<Address> parse_address(std::string_view text);

}  // namespace w5xde
