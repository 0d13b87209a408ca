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

struct Hash64::State {
  XXH3_state_t xxh3;
};

Hash64::Hash64() : state_(std::make_unique<State>()) {
  reset();
}

Hash64::~Hash64() = default;

void Hash64::reset() {
  XXH3_64bits_reset(&state_->xxh3);
}

void Hash64::update(Bytes bytes) {
  XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
}

std::uint64_t Hash64::digest() const {
  return XXH3_64bits_digest(&state_->xxh3);
}

}  // namespace w5xde
