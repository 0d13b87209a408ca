#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace w5xde {

// Names, and reasons that a peer gives, are no longer than this.
inline constexpr std::size_t kPrintableBytesMax = 256;

// Text from a peer, made safe for terminals, logs and databases: valid UTF-8; control characters and others
// that change the direction of text become escapes (\n, \x1b, \u202e); longer text is cut between two
// characters and ends with "…". Decoders call it for every text of a peer; a second call changes nothing.
std::string printable(std::string_view text, std::size_t bytes_max = kPrintableBytesMax);

// 60,000
std::string grouped(std::uint64_t value);

}  // namespace w5xde
