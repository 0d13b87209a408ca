#include "base/hash.h"

#include <fmt/format.h>

// Inlined, because the frames of a small model are shorter than a call through the library is worth.
#define XXH_INLINE_ALL  // NOLINT(readability-identifier-naming): the library chose its name
#include <xxhash.h>

namespace w5xde {

std::uint64_t hash64(Bytes bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::string hash128_hex(Bytes bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace w5xde
