#include "base/hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

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

std::string hash128_hex(Bytes bytes, const TellProgress& progress) {
  constexpr std::size_t kAtOnce = 16 * 1024 * 1024;
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  XXH3_128bits_reset(state.get());
  for (std::size_t at = 0; at < bytes.size(); at += kAtOnce) {
    tell(progress, at, bytes.size());
    const Bytes part = bytes.subspan(at, std::min(kAtOnce, bytes.size() - at));
    XXH3_128bits_update(state.get(), part.data(), part.size());
  }
  const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace w5xde
