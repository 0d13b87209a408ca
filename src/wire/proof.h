#pragma once

#include <array>
#include <cstddef>

#include "w5xde/result.h"
#include "wire/messages.h"

namespace w5xde {

// To a coordinator with TLS, behind the hello: I have the secret of this invitation. The secret does not
// travel. One who has none, because an authority vouches for it, says so with zeros.
struct Proof {
  std::array<std::byte, 8> invitation{};  // its id
  std::array<std::byte, 16> machine{};    // equal for all processes of one machine; zeros: not said
  std::array<std::byte, 32> code{};       // HMAC-SHA256 (net/invitation.h)
  bool operator==(const Proof&) const = default;
};

void encode(const Proof& message, Head& head);
Result<Proof> decode_proof(Bytes head);

}  // namespace w5xde
