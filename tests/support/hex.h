#pragma once

#include <string>

#include "base/bytes.h"

namespace w5xde {

// "0a0b"
std::string hex_of(Bytes bytes);

}  // namespace w5xde
