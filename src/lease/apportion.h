#pragma once

#include <cstdint>
#include <vector>

#include "lease/ledger.h"

namespace w5xde {

// One node's share of a step.
struct Share {
  NodeId node = 0;
  double seconds_per_slot = 1;
  double ready_seconds = 0;     // until it has answered what it holds of the step
  std::uint32_t slots_min = 1;  // fewer are not worth a lease to it
  bool holds_some = false;      // of the step already
  bool cold = false;            // holds nothing, and was hardly ever measured
  std::uint32_t slots = 0;      // more than it holds: the result
};

// Gives each node as many of a step's `open_slots` as let all finish together:
//
//   slots = (T - ready_seconds) / seconds_per_slot, with T such that they add up.
//
// A node that could not even be ready by T gets none and is left out of the result. A share is cut into
// blocks of powers of two slots; blocks that are smaller than slots_min go to others. What is left over, less
// than a slot for each, goes to those who would be done with it first. Pure.
std::vector<Share> apportion(std::vector<Share> shares, std::uint32_t open_slots);

// async: how many slots a lease has for a node that takes `seconds_per_slot` (0: not measured yet).
std::uint32_t async_lease_slots(double seconds_per_slot, std::uint32_t slots_max, std::uint32_t grain);

}  // namespace w5xde
