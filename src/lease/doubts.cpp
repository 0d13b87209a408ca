#include "lease/doubts.h"

#include <algorithm>

namespace w5xde {

Doubts::Said Doubts::add(std::uint64_t step, SlotBlock block, NodeId node, const std::string& who) {
  Said said = Said::once;
  for (Doubt& doubt : doubts_) {
    if (doubt.step != step || !doubt.block.overlaps(block)) continue;
    if (doubt.who != who) return Said::by_two;
    doubt.node = node;
    said = Said::twice_by_one;
  }
  if (said == Said::once) doubts_.push_back({step, block, node, who, block.slot_count, 0});
  return said;
}

// A block that is leased again may be cut: its parts lie within it, and each is answered once.
std::vector<NodeId> Doubts::refuted_by(std::uint64_t step, SlotBlock block, const std::string& who) {
  std::vector<NodeId> refuted;
  std::erase_if(doubts_, [&](Doubt& doubt) {
    if (doubt.step != step || !doubt.block.overlaps(block)) return false;
    doubt.slots_open -= std::min(doubt.slots_open, block.slot_count);
    if (doubt.who != who) doubt.slots_refuted += block.slot_count;
    if (doubt.slots_refuted >= doubt.block.slot_count) refuted.push_back(doubt.node);
    return doubt.slots_open == 0;
  });
  return refuted;
}

}  // namespace w5xde
