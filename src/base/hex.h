#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"

namespace w5xde {

// "00ff7a": two digits a byte.
std::string hex_text(Bytes bytes);
// The reverse: false when the text is not exactly the digits of `bytes`.
bool parse_hex(std::string_view text, MutableBytes bytes);

}  // namespace w5xde
