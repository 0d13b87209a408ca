#include "wire/hello.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "wire/map_reader.h"
#include "wire/value.h"

namespace w5xde {

using nlohmann::json;

void encode(const Hello& message, Head& head) {
  encode_value({{"protocol_min", message.protocol_min},
                {"protocol_max", message.protocol_max},
                {"software", message.software},
                {"name", message.name},
                {"engine", message.engine},
                {"role", message.role},
                {"tls", message.tls},
                {"model_fingerprint", message.model_fingerprint}},
               head);
}

Result<Hello> decode_hello(Bytes head, const Limits& limits) {
  W5XDE_TRY(const json map, decode_value(head, limits));
  if (!map.is_object()) return corrupt("a hello is not a map");
  const MapReader reader("a hello", map, limits);
  Hello message;
  std::uint64_t protocol_min = 0, protocol_max = 0;
  W5XDE_CHECK(reader.number("protocol_min", UINT32_MAX, protocol_min));
  W5XDE_CHECK(reader.number("protocol_max", UINT32_MAX, protocol_max));
  if (protocol_min == 0 || protocol_max < protocol_min)
    return corrupt("a hello without a range of protocols");
  message.protocol_min = static_cast<std::uint32_t>(protocol_min);
  message.protocol_max = static_cast<std::uint32_t>(protocol_max);
  W5XDE_CHECK(reader.text("software", message.software));
  W5XDE_CHECK(reader.text("name", message.name));
  W5XDE_CHECK(reader.text("engine", message.engine));
  W5XDE_CHECK(reader.text("role", message.role));
  W5XDE_CHECK(reader.flag("tls", message.tls));
  W5XDE_CHECK(reader.number("model_fingerprint", UINT64_MAX, message.model_fingerprint));
  return message;
}

Result<std::uint32_t> negotiate(const Hello& mine, const Hello& theirs, LinkFacts link) {
  const std::uint32_t protocol = std::min(mine.protocol_max, theirs.protocol_max);
  if (protocol < std::max(mine.protocol_min, theirs.protocol_min)) {
    return incompatible(fmt::format("{} speaks protocol {} to {}, {} speaks {} to {}; update the older one",
                                    mine.software, mine.protocol_min, mine.protocol_max, theirs.software,
                                    theirs.protocol_min, theirs.protocol_max));
  }
  if ((mine.tls || theirs.tls) && !link.encrypted) {
    return incompatible(fmt::format("{} insists on TLS and this connection has none; connect with TLS",
                                    mine.tls ? mine.software : theirs.software));
  }
  if (mine.model_fingerprint != 0 && theirs.model_fingerprint != 0 &&
      mine.model_fingerprint != theirs.model_fingerprint) {
    return incompatible(
        fmt::format("the models differ: fingerprint {:016x} here, {:016x} there; join with the same model",
                    mine.model_fingerprint, theirs.model_fingerprint));
  }
  return protocol;
}

}  // namespace w5xde
