// Every constant of this folder that was found by measuring, with its unit and its reason. The forecast uses
// the same ones.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/clock.h"

namespace w5xde {

// ---- What work costs beside the computing

// Seconds that an exchange (a lease and its answer) costs the two processes at least, and seconds for each
// byte of it, through two sockets and two hashes: measured on loopback.
inline constexpr double kExchangeSeconds = 60e-6;
inline constexpr double kSecondsPerByte = 1.25e-9;  // a byte
// Seconds. A lease that takes no longer in one lane is computed in one: waking other threads would cost more
// than it gains.
inline constexpr double kOneLaneSeconds = 0.002;

// Seconds that an exchange costs beside the computing: what a coordinator believes, and so the forecast. A
// rate of 0 is not known, or is loopback's.
constexpr double exchange_seconds(double round_trip, double bytes, double bytes_per_second) {
  const double link = bytes_per_second > 0 ? 1 / bytes_per_second : 0;
  return kExchangeSeconds + round_trip + bytes * std::max(kSecondsPerByte, link);
}

// ---- How a node's pace is measured

// Seconds. An estimate is a mean over about this long, however long a lease takes: a node that was preempted
// once must not get a smaller share, one that is really slower must.
inline constexpr double kMeanSeconds = 2;
// What part of an estimate one answer replaces, at least and at most.
inline constexpr double kSmoothingMin = 0.005;
inline constexpr double kSmoothingMax = 0.3;  // at most
// Answers, or steps, until what is measured says something: caches are cold before. A node that was never
// measured holds at most this many slots.
inline constexpr std::uint32_t kWarmUp = 2;
// Speeds, or times of a step, whose ratio is smaller than this differ by noise: they count as equal.
inline constexpr double kNoiseRatio = 1.6;
// Costs that are less than this part of a step's time are not worth a decision.
inline constexpr double kSmallPart = 0.1;
// What takes less than this part of another's time is clearly cheaper.
inline constexpr double kClearlyLess = 0.7;
// Trying a node again that the last steps had no slot for costs what it is left out for. It is tried when
// this many times as long has gone by.
inline constexpr double kCostsBetweenTries = 10;

// ---- How large leases are

// Seconds that a node is given work for at once, so that a node that joins still finds work in a long step;
// but at least this many times its exchange.
inline constexpr double kLeaseSecondsMax = 2;
inline constexpr double kLeaseExchanges = 8;  // times an exchange
// Exchanges until a node has answered and has its next lease: two, and one more for what they take longer at
// times.
inline constexpr double kExchangesAhead = 3;
// Seconds. async: leases are as long as this where slots are short. A frame for each slot would cost more
// than the slot.
inline constexpr double kAsyncLeaseSeconds = 0.004;

// ---- When a node is late

// This many times as long as usual, and never before these seconds, which are many slices of a scheduler. The
// second number is for a node that was never measured.
inline constexpr double kLateFactor = 4;
inline constexpr double kLateSeconds = 0.1;          // seconds
inline constexpr double kLateSecondsUnmeasured = 5;  // seconds, never measured

// ---- How often all nodes are looked at

// Of few nodes, all are looked at with every answer. Of more, so often that each is looked at this many times
// for every answer that it gives, and after this long in any case.
inline constexpr std::size_t kFewNodes = 32;
inline constexpr std::size_t kLooksPerAnswer = 8;
inline constexpr Duration kLookAtAllEvery = std::chrono::milliseconds(10);  // at least

// A coordinator looks for stragglers this often while nothing else happens.
inline constexpr std::chrono::milliseconds kTick{20};

// ---- Who works

// A turn of a machine's nodes lasts this long at least: long enough for caches to be warm most of the time,
// short enough for nodes to have computed equally many slots within a second. And this many leases, so that
// it is long beside what nodes still hold when it ends.
inline constexpr double kTurnSeconds = 0.05;
inline constexpr std::uint64_t kLeasesPerTurn = 16;
// Seconds. Bringing a node in is free if it takes no longer: a twentieth of a turn.
inline constexpr double kFreeSwapInSeconds = kTurnSeconds / 20;
// Exchanges that become this much cheaper (a codec was chosen) make another pool of it: how many nodes work
// is estimated again.
inline constexpr double kFarCheaper = 1.0 / 3;
// A number of nodes is judged by the median of this many steps, over these seconds.
inline constexpr std::size_t kWindowSteps = 3;
inline constexpr double kWindowSeconds = 0.5;  // at least
// Another number of nodes must make steps this much shorter to be kept. One node for each machine may even
// seem to make them longer: half seconds on a shared machine differ by more.
inline constexpr double kShorter = 0.95;
inline constexpr double kOnePerMachine = 1.1;  // one node for each machine
// A trial that costs this part of a usual step more than usual, and half a window's time, ends.
inline constexpr double kTrialCost = 0.4;
// Windows between trials. What failed is tried again ever more rarely: conditions change, but not all the
// time.
inline constexpr std::size_t kWindowsBetweenMin = 2;
inline constexpr std::size_t kWindowsBetweenMax = 256;

}  // namespace w5xde
