#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "net/address.h"
#include "net/crypto.h"
#include "w5xde/result.h"

namespace w5xde {

using InvitationId = std::array<std::byte, 8>;
using InvitationSecret = std::array<std::byte, 32>;

inline constexpr std::string_view kInvitationScheme = "w5xde://";

// All that a machine needs to join a coordinator: where it is, which certificate it has, and a secret that
// the two share. As text, w5xde://HOST:PORT/TEXT: whoever reads it can join.
struct Invitation {
  Address address;
  InvitationId id{};
  InvitationSecret secret{};
  Digest certificate{};  // the SHA-256 of the coordinator's

  std::string to_string() const;
};

// Tells text that is cut off from text that is mistyped, and both from another version's. HOST may be
// replaced by another name of the same machine: the checksum is of TEXT.
Result<Invitation> parse_invitation(std::string_view text);

// What the side that joins proves that it has the secret with, on this one TLS session and with this one key:
// `session_secret` is Stream::session_secret(), `identity` the key's own (64 hexadecimal digits).
Digest proof_of(const InvitationSecret& secret, Bytes session_secret, std::string_view identity);

}  // namespace w5xde
