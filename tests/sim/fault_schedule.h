#pragma once

#include "base/random.h"
#include "sim/sim_pool.h"

namespace w5xde {

// Kills nodes of a pool while it runs: each time a few batches after the last kill, and then a few turns of
// the loop later. The seed decides which node and when.
class FaultSchedule {
 public:
  FaultSchedule(SimPool& pool, std::uint64_t seed);
  unsigned killed() const { return killed_; }

 private:
  Random random_;
  unsigned killed_ = 0;
  std::uint64_t due_batches_ = 6, due_turns_ = 1, turns_ = 0;
};

}  // namespace w5xde
