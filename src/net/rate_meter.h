#pragma once

#include <cstdint>

#include "base/clock.h"

namespace w5xde {

// How fast a link moves bytes while there are bytes to move; idle time does not count. Pure: every call
// brings the time.
class RateMeter {
 public:
  // There is something to move from now on. Harmless when there already was.
  void start(Instant now);
  void moved(std::uint64_t bytes, Instant now);
  // Nothing more to move.
  void stop(Instant now);

  // Smoothed over the last tenths of a second of movement; 0 while not known.
  double bytes_per_second() const { return rate_; }

 private:
  void settle(Instant now);

  bool busy_ = false;
  Instant since_;
  Duration busy_time_ = Duration::zero();
  std::uint64_t bytes_ = 0;
  double rate_ = 0;
};

}  // namespace w5xde
