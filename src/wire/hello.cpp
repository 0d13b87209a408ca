#include "wire/hello.h"

#include <algorithm>

#include "base/errors.h"
#include "wire/map_fields.h"

namespace w5xde {

namespace {

constexpr auto kHello = [](auto& field, auto& hello) {
  field("protocol_min", hello.protocol_min);
  field("protocol_max", hello.protocol_max);
  field("software", hello.software);
  field("name", hello.name);
  field("engine", hello.engine);
  field("role", hello.role);
  field("tls", hello.tls);
  field("model_fingerprint", hello.model_fingerprint);
};

}  // namespace

void encode(const Hello& message, Head& head) {
  encode_map(kHello, message, head);
}

Result<Hello> decode_hello(Bytes head, const Limits& limits) {
  const Hello without_protocols{.protocol_min = 0, .protocol_max = 0};
  W5XDE_TRY(Hello message, decode_map(kHello, "a hello", head, limits, without_protocols));
  if (message.protocol_min == 0 || message.protocol_max < message.protocol_min)
    return corrupt("a hello without a range of protocols");
  return message;
}

Result<std::uint32_t> negotiate(const Hello& mine, const Hello& theirs, LinkFacts link) {
  const std::uint32_t protocol = std::min(mine.protocol_max, theirs.protocol_max);
  if (protocol < std::max(mine.protocol_min, theirs.protocol_min)) {
    return incompatible("{} speaks protocol {} to {}, {} speaks {} to {}; update the older one",
                        mine.software, mine.protocol_min, mine.protocol_max, theirs.software,
                        theirs.protocol_min, theirs.protocol_max);
  }
  if ((mine.tls || theirs.tls) && !link.encrypted) {
    return incompatible("{} insists on TLS and this connection has none; connect with TLS",
                        mine.tls ? mine.software : theirs.software);
  }
  if (mine.model_fingerprint != 0 && theirs.model_fingerprint != 0 &&
      mine.model_fingerprint != theirs.model_fingerprint) {
    return incompatible(
        "the models differ: fingerprint {:016x} here, {:016x} there; join with the same model",
        mine.model_fingerprint, theirs.model_fingerprint);
  }
  return protocol;
}

}  // namespace w5xde
