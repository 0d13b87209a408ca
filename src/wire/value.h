// MessagePack values: the safe way to say anything that is not a tensor. Cold messages are maps of it whose
// readers ignore keys that they do not know.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/bytes.h"
#include "base/limits.h"
#include "w5xde/result.h"

namespace w5xde {

// Appends the MessagePack form of `value`.
void encode_value(const nlohmann::json& value, std::vector<std::byte>& out);

// One value that fills `bytes` exactly. Depth and number of items are checked before anything is built.
Result<nlohmann::json> decode_value(Bytes bytes, const Limits& limits);

}  // namespace w5xde
