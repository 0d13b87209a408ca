#pragma once

#include <optional>

#include "base/clock.h"

namespace w5xde {

// When a coordinator alone says how to join it: as it begins, when its last node has left, and again and
// again while nobody is in.
class JoinHint {
 public:
  static constexpr Duration kEvery = std::chrono::seconds(30);

  // Asked now and then. True: it is to be said now.
  bool due(bool somebody_is_in, Instant now);

 private:
  std::optional<Instant> said_;  // since somebody was in
};

}  // namespace w5xde
