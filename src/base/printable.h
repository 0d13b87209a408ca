#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace w5xde {

// Names, and reasons that a peer gives, are no longer than this.
inline constexpr std::size_t kPrintableBytesMax = 256;

// Text from a peer, made safe for terminals, logs and databases: valid UTF-8, without control characters or
// characters that change the direction of text, which are written as escapes (\n, \x1b, \u202e). Longer text
// is cut between two characters and ends with "…". Every text that comes from a peer passes through here
// where it is decoded, so that nobody else has to think of it. Text that has passed once does not change any
// more.
std::string printable(std::string_view text, std::size_t bytes_max = kPrintableBytesMax);

}  // namespace w5xde
