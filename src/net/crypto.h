// What an adversary must not be able to forge or guess. Checksums against accidents are in base/hash.h.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/bytes.h"
#include "base/tell_progress.h"
#include "w5xde/result.h"

namespace w5xde {

using Digest = std::array<std::byte, 32>;

Digest sha256(Bytes bytes);
// 64 hexadecimal digits, of what may take long: tells how far it is.
std::string sha256_hex(Bytes bytes, const TellProgress& progress = {});

// Only who has the key can make it, and nobody learns the key from it.
Digest hmac_sha256(Bytes key, Bytes message);

// Takes as long when the first byte differs as when the last one does: time tells nothing about a secret.
bool equal_in_constant_time(Bytes a, Bytes b);

// Bytes that nobody can guess.
Status fill_with_random(MutableBytes bytes);

}  // namespace w5xde
