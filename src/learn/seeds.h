#pragma once

#include <cstdint>

#include "base/random.h"

namespace w5xde {

// Every random draw of a run comes from its seed, by way of the step and the slot that it is for; who
// computes a slot, and after what, changes nothing.
constexpr std::uint64_t step_seed(std::uint64_t run_seed, std::uint64_t step) {
  return mix(mix(run_seed) ^ step);
}
constexpr std::uint64_t slot_seed(std::uint64_t of_step, std::uint32_t slot) {
  return mix(of_step ^ mix(slot));
}

}  // namespace w5xde
