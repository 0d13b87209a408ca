// Every constant that was tuned by measuring, with its unit and what measured it. The forecast uses the same.
#pragma once

#include <algorithm>
#include <chrono>

namespace w5xde {

// Seconds. A lease that takes no longer in one lane is computed in one: waking other threads would cost more
// than it gains.
inline constexpr double kOneLaneSeconds = 0.002;

// What an exchange (a lease and its answer) costs the two processes at least, and each byte of it, through
// two sockets and two hashes: measured on loopback.
inline constexpr double kExchangeSeconds = 60e-6;
inline constexpr double kSecondsPerByte = 1.25e-9;

// Seconds that an exchange costs beside the computing: what a coordinator believes, and so the forecast. A
// rate of 0 is not known, or is loopback's.
constexpr double exchange_seconds(double round_trip, double bytes, double bytes_per_second) {
  const double link = bytes_per_second > 0 ? 1 / bytes_per_second : 0;
  return kExchangeSeconds + round_trip + bytes * std::max(kSecondsPerByte, link);
}

// Part of the usual step time. Another number of nodes takes over where its steps are no longer than this:
// less would be noise.
inline constexpr double kOtherSizePays = 0.95;

// How often a coordinator looks for stragglers while nothing else happens.
inline constexpr std::chrono::milliseconds kTick{20};

}  // namespace w5xde
