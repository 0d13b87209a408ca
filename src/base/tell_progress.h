#pragma once

#include <cstdint>
#include <functional>

namespace w5xde {

// What long work is given to tell how far it is: `done` of `all`, in units of its own. From one thread at a
// time, as often as it likes. Empty where nobody wants to know: see tell().
using TellProgress = std::function<void(std::uint64_t done, std::uint64_t all)>;

inline void tell(const TellProgress& progress, std::uint64_t done, std::uint64_t all) {
  if (progress) progress(done, all);
}

}  // namespace w5xde
