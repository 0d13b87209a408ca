// Hash64, in a file of its own: it takes the library's widest vector code, chosen at run time, where hash64
// of a few bytes is inlined. Both give the same sums.
#include "base/hash.h"

#if defined(__x86_64__) && __has_include(<xxh_x86dispatch.h>)
#include <xxh_x86dispatch.h>
#else
#include <xxhash.h>
#endif

namespace w5xde {

Hash64::Hash64() : state_(XXH3_createState()) {
  reset();
}

Hash64::~Hash64() {
  XXH3_freeState(state_);
}

void Hash64::reset() {
  XXH3_64bits_reset(state_);
}

void Hash64::update(Bytes bytes) {
  XXH3_64bits_update(state_, bytes.data(), bytes.size());
}

std::uint64_t Hash64::digest() const {
  return XXH3_64bits_digest(state_);
}

}  // namespace w5xde
