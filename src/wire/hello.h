#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/limits.h"
#include "w5xde/result.h"
#include "wire/messages.h"

namespace w5xde {

// The first frame in both directions: who one is and what one speaks.
struct Hello {
  std::uint32_t protocol_min = 1;  // of the messages; the frame has its own version
  std::uint32_t protocol_max = 1;
  std::string software;             // "w5xde 0.1.0"
  std::string name;                 // for logs and status
  std::string engine;               // "torch 1.13.1 cpu"; empty where none is loaded
  std::string role = "node";        // "coordinator", "node", or "observer", who only asks for the status
  std::vector<std::string> codecs;  // lossless ones that this side decodes, in order of preference
  std::vector<std::string> gradient_codecs;  // likewise
  bool tls = false;                          // this side insists on TLS
  std::uint64_t model_fingerprint = 0;       // 0: has no model yet

  bool operator==(const Hello&) const = default;
};

// What two sides have in common.
struct Agreement {
  std::uint32_t protocol = 0;
  std::vector<std::string> codecs;
  std::vector<std::string> gradient_codecs;

  bool operator==(const Agreement&) const = default;
};

void encode(const Hello& message, Head& head);
Result<Hello> decode_hello(Bytes head, const Limits& limits);

struct LinkFacts {
  bool encrypted = false;
};

// The highest protocol and the codecs that both speak (in my order), or an `incompatible` that says what to
// do. Both sides come to the same answer about whether they agree.
Result<Agreement> negotiate(const Hello& mine, const Hello& theirs, LinkFacts link);

}  // namespace w5xde
