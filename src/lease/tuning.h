// Every number of this folder that was found by measuring or by judgement, with its unit and its reason. The
// forecast uses the same ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace w5xde {

// ---- What is noise, and what is worth a decision

// Speeds, or times of a step, whose ratio is smaller than this differ by noise: they count as equal.
inline constexpr double kNoiseRatio = 1.6;
// A cost that is less than this part of what it is spread over is not worth a decision.
inline constexpr double kSmallPart = 0.1;
// What takes less than this part of another's time is clearly cheaper.
inline constexpr double kClearlyLess = 0.7;
// Seconds. Work that takes no longer is not worth waking the threads of other lanes for. Bringing a node in
// that takes no longer is free.
inline constexpr double kShortSeconds = 0.002;

// ---- What work costs beside the computing

// Seconds that an exchange (a lease and its answer) costs the two processes at least, and seconds for each
// byte of it, through two sockets and two hashes: measured on loopback.
inline constexpr double kExchangeSeconds = 60e-6;
inline constexpr double kSecondsPerByte = 1.25e-9;  // a byte

// Seconds that an exchange costs beside the computing: what a coordinator believes, and so the forecast. A
// rate of 0 is not known, or is loopback's.
constexpr double exchange_seconds(double round_trip, double bytes, double bytes_per_second) {
  const double link = bytes_per_second > 0 ? 1 / bytes_per_second : 0;
  return kExchangeSeconds + round_trip + bytes * std::max(kSecondsPerByte, link);
}

// ---- How a node's pace is measured, and how large its leases are

// Seconds. An estimate is a mean over about this long: a node that was preempted once must not get a smaller
// share, one that is really slower must. A lease is at most this long, or ten exchanges if that is longer, so
// that a node that joins still finds work in a long step.
inline constexpr double kHorizonSeconds = 2;
// The part of an estimate that one answer replaces, at least and at most.
inline constexpr double kSmoothingMin = 0.005;
inline constexpr double kSmoothingMax = 0.3;  // at most
// The part by which the seconds of a lease differ from the estimate, before that is measured.
inline constexpr double kDeviationUnmeasured = 0.25;
// Answers, steps or windows until what is measured says something: caches are cold before. A node that was
// never measured holds at most this many slots.
inline constexpr std::uint32_t kWarmUp = 2;
// Exchanges until a node has answered and has its next lease: two, and one more for what they take longer at
// times.
inline constexpr double kExchangesAhead = 3;
// Seconds of an async lease where slots are short. A frame for each slot would cost more than the slot.
inline constexpr double kAsyncLeaseSeconds = 0.004;

// ---- When a node is late

// A node is late after this many times its usual seconds, but never before kLateSeconds, which are many
// slices of a scheduler. A node that was never measured, or is sent the parameters, has
// kLateSecondsUnmeasured.
inline constexpr double kLateFactor = 4;
inline constexpr double kLateSeconds = 0.1;          // seconds
inline constexpr double kLateSecondsUnmeasured = 5;  // seconds

// ---- How often all nodes are looked at

// While nothing else happens, a coordinator looks at all nodes this often. It looks at up to kFewNodes nodes
// with every answer. It looks at more nodes once in every (nodes / kLooksPerAnswer) answers, and with the
// first answer after half a tick.
inline constexpr std::chrono::milliseconds kTick{20};
inline constexpr std::size_t kFewNodes = 32;
inline constexpr std::size_t kLooksPerAnswer = 8;

// ---- Who works

// Seconds and leases that a turn of a machine's nodes lasts at least: long enough for caches to be warm most
// of the time and long beside what nodes still hold when it ends, short enough for all nodes to have computed
// equally many slots within a second.
inline constexpr double kTurnSeconds = 0.05;
inline constexpr std::uint64_t kLeasesPerTurn = 16;
// When exchanges become three times cheaper (a codec was chosen), the number of nodes that work is estimated
// again.
inline constexpr double kFarCheaper = 1.0 / 3;
// A number of nodes is judged by the median of a window: this many steps, and these seconds, at least.
inline constexpr std::size_t kWindowSteps = 3;
inline constexpr double kWindowSeconds = 0.5;  // seconds
// Steps with another number of nodes must take less than this part of the usual time.
inline constexpr double kShorter = 0.95;
// Windows between trials, at most. What failed is tried ever more rarely, but conditions change.
inline constexpr std::size_t kWindowsBetweenMax = 256;

}  // namespace w5xde
