#include "lease/pace.h"

#include <algorithm>
#include <cmath>

namespace w5xde {

Instant Pace::could_begin(const Grant& grant, std::optional<Instant> step_begun) {
  return step_begun ? std::max(grant.since, *step_begun) : grant.since;
}

void Pace::measure(const Grant& grant, std::optional<Instant> step_begun, const Computing& computing,
                   Instant now) {
  const double seconds = seconds_of(now - could_begin(grant, step_begun));
  const double slots = grant.block.slot_count;
  // Evaluating a slot is no measure of training one.
  const bool train = grant.work == Work::train;
  if (train) {
    const double trusted = trust();
    for (double* estimate : {&seconds_per_slot, &first_lag, &next_lag}) *estimate *= trusted;
    unused_seconds = 0;
  }
  // A plain mean at first. The very first answer, with everything cold, is forgotten when there is a second.
  const double mean = 1.0 / static_cast<double>(std::max<std::uint64_t>(answers, 1));
  ++answers;
  const double smoothing =
      std::max(mean, std::clamp(seconds / kHorizonSeconds, kSmoothingMin, kSmoothingMax));
  const auto learn = [&](double& estimate, double measured) {
    estimate = estimate == 0 ? measured : estimate + smoothing * (measured - estimate);
  };
  if (train) {
    const std::uint32_t used = std::clamp(computing.lanes, 1u, grant.lanes);
    // It has other cores than before, and it would take many leases to get over that. Where a lease was
    // merely too small for all of them, fewer may not mean slower: a quota may hold for all cores together.
    if (grant.lanes != lanes_max) seconds_per_slot *= static_cast<double>(lanes) / static_cast<double>(used);
    lanes = used;
    lanes_max = grant.lanes;
    const double measured = computing.seconds / slots;
    if (seconds_per_slot > 0) learn(deviation, std::min(1.0, std::abs(measured / seconds_per_slot - 1)));
    learn(seconds_per_slot, measured);
  }
  learn(turnaround, seconds / slots);
  // The lag shows where the node had the lease before it could begin.
  if (step_begun && grant.since <= std::max(*step_begun, answered_at)) {
    const bool first = answered_at < *step_begun;
    const double busy = seconds_of(now - (first ? *step_begun : answered_at));
    learn(first ? first_lag : next_lag, std::max(0.0, busy - computing.seconds));
  }
  answered_at = now;
}

double Pace::trust() const {
  if (unused_seconds == 0) return 1;
  const double cost = std::max(first_lag, step_seconds) + seconds_per_slot;
  // Never 0, which would mean that it was not measured.
  return std::max(1e-6, std::exp(-unused_seconds * kSmallPart / cost));
}

std::uint32_t Pace::portion_of(std::uint32_t share, std::uint32_t lanes_now) const {
  const double off = share / 2.0 * seconds_per_slot * deviation;
  if (off <= std::max(exchange_seconds, next_lag)) return share;
  // A lane without a slot would be idle.
  return std::clamp(share / 2, std::min(share, lanes_now), share);
}

}  // namespace w5xde
