#include "learn/step_in_progress.h"

#include <algorithm>

namespace w5xde {

void StepInProgress::begin(std::uint32_t slots, std::uint64_t floats, std::uint64_t gradient_floats) {
  WatchHalves watch;
  if (global_batch_) {
    watch = [this, gradient_floats](const HalfSum& left, const HalfSum& right) {
      global_batch_->measure(left, right, gradient_floats, pool_);
    };
  }
  reduction_.emplace(slots, floats, std::move(watch));
  landings_.clear();
  out_ = feedback_changed_ = false;
}

void StepInProgress::begin_landing(std::uint64_t node, const Landing& landing) {
  const bool twice = std::ranges::any_of(
      landings_, [&](const auto& member) { return member.second.block.overlaps(landing.block); });
  if (!twice) landings_[node] = landing;
}

bool StepInProgress::landed(std::uint64_t node, std::uint64_t floats) {
  const auto found = landings_.find(node);
  if (found == landings_.end()) return false;
  found->second.landed = floats;
  return true;
}

void StepInProgress::answered(SlotBlock block) {
  std::erase_if(landings_, [&](const auto& member) { return member.second.block.overlaps(block); });
}

std::vector<Landing> StepInProgress::list_of_landings() const {
  std::vector<Landing> landings;
  for (const auto& [node, landing] : landings_) landings.push_back(landing);
  return landings;
}

}  // namespace w5xde
