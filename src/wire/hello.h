#pragma once

#include <cstdint>
#include <string>

#include "base/limits.h"
#include "w5xde/result.h"
#include "wire/messages.h"

namespace w5xde {

// The newest protocol: since 2, a node prepares samples as the offer says; since 3, it knows the model's file
// by its SHA-256, and can prove an invitation.
inline constexpr std::uint32_t kProtocol = 3;
inline constexpr std::uint32_t kProtocolOfPreparation = 2;
inline constexpr std::uint32_t kProtocolOfSha256 = 3;

// The first frame in both directions: who one is and what one speaks.
struct Hello {
  std::uint32_t protocol_min = 1;  // of the messages; the frame has its own version
  std::uint32_t protocol_max = kProtocol;
  std::string software;                 // "w5xde 0.1.0"
  std::string name;                     // for logs and status
  std::string engine;                   // "torch 1.13.1 cpu"; empty where none is loaded
  std::string role = "node";            // "coordinator", "node", or "observer", who only asks for the status
  bool tls = false;                     // this side insists on TLS
  std::uint64_t model_fingerprint = 0;  // 0: has no model yet

  bool operator==(const Hello&) const = default;
};

void encode(const Hello& message, Head& head);
Result<Hello> decode_hello(Bytes head, const Limits& limits);

struct LinkFacts {
  bool encrypted = false;
};

// The highest protocol that both speak, or an `incompatible` that says what to do. Both sides reach the
// same answer. Whoever speaks a protocol decodes every codec of it; a new codec is a new protocol.
Result<std::uint32_t> negotiate(const Hello& mine, const Hello& theirs, LinkFacts link);

}  // namespace w5xde
