#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/slot_block.h"
#include "lease/ledger.h"

namespace w5xde {

// Answers that are not finite: either the run has diverged, or their sender is broken. Another node computes
// the same slots and decides. `who` is a node's name, which it keeps when it leaves and joins again.
class Doubts {
 public:
  enum class Said { once, twice_by_one, by_two };
  // `node` answered this block of a step with numbers that are not finite.
  Said add(std::uint64_t step, SlotBlock block, NodeId node, const std::string& who);

  // `who` answered this block with finite numbers, and they count. Returns the nodes that are refuted: all
  // slots of a block that they had no finite numbers for were computed by others.
  std::vector<NodeId> refuted_by(std::uint64_t step, SlotBlock block, const std::string& who);

 private:
  struct Doubt {
    std::uint64_t step = 0;
    SlotBlock block;
    NodeId node = 0;
    std::string who;
    std::uint32_t slots_open = 0;
    std::uint32_t slots_refuted = 0;
  };

  std::vector<Doubt> doubts_;
};

}  // namespace w5xde
