#pragma once

#include <chrono>

namespace w5xde {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

constexpr double seconds_of(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

// Saturates: bytes / (0 bytes a second) is a long time, not undefined behaviour. NaN counts as long ago.
constexpr Duration duration_of(double seconds) {
  constexpr double kLongest = seconds_of(Duration::max());
  if (seconds >= kLongest) return Duration::max();
  if (!(seconds > -kLongest)) return Duration::min();
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

// Where time comes from; tests and the simulator bring their own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
};

class SteadyClock final : public Clock {
 public:
  Instant now() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace w5xde
