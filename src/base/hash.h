// XXH3: the checksum of frames and checkpoints, and the fingerprint of models and parameters.
#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/tell_progress.h"

struct XXH3_state_s;

namespace w5xde {

std::uint64_t hash64(Bytes bytes);

// 128 bits as 32 hexadecimal digits.
std::string hash128_hex(Bytes bytes);
// The same, of what takes long: tells how far it is.
std::string hash128_hex(Bytes bytes, const TellProgress& progress);

// The same sum as hash64, over bytes that come piece by piece. Allocates once, at construction.
class Hash64 {
 public:
  Hash64();
  ~Hash64();
  Hash64(const Hash64&) = delete;
  Hash64& operator=(const Hash64&) = delete;

  void reset();
  void update(Bytes bytes);
  std::uint64_t digest() const;

 private:
  XXH3_state_s* state_;
};

}  // namespace w5xde
