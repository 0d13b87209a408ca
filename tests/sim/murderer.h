#pragma once

#include "base/random.h"
#include "sim/sim_pool.h"

namespace w5xde {

// Kills a node whenever the run has got some batches further, some turns of the loop after that.
class Murderer {
 public:
  Murderer(SimPool& pool, std::uint64_t seed);
  unsigned killed() const { return killed_; }

 private:
  Random random_;
  unsigned killed_ = 0;
  std::uint64_t due_batches_ = 6, due_turns_ = 1, turns_ = 0;
};

}  // namespace w5xde
