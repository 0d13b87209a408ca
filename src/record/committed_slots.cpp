#include "record/committed_slots.h"

#include <algorithm>

namespace w5xde {

void CommittedSlots::add(std::uint64_t first, std::uint64_t count) {
  const std::uint64_t last = first + count;
  end_ = std::max(end_, last);
  twice_ += std::min(last, next_) - std::min(first, next_);
  std::uint64_t begin = std::max(first, next_), end = std::max(last, next_);
  if (begin == end) return;
  // One range of this and all that it overlaps or touches.
  auto range = ahead_.upper_bound(begin);
  if (range != ahead_.begin() && std::prev(range)->second >= begin) --range;
  const std::uint64_t from = begin, to = end;
  while (range != ahead_.end() && range->first <= end) {
    const std::uint64_t both_from = std::max(from, range->first), both_to = std::min(to, range->second);
    twice_ += both_to - std::min(both_from, both_to);
    begin = std::min(begin, range->first);
    end = std::max(end, range->second);
    range = ahead_.erase(range);
  }
  if (begin == next_) {
    next_ = end;
  } else {
    ahead_[begin] = end;
  }
}

SlotRanges CommittedSlots::after(std::uint64_t slot) const {
  SlotRanges ranges;
  if (slot < next_) ranges.emplace_back(slot, next_);
  for (const auto& [first, end] : ahead_) {
    if (end > slot) ranges.emplace_back(std::max(first, slot), end);
  }
  return ranges;
}

std::uint64_t CommittedSlots::missing() const {
  std::uint64_t missing = end_ - next_;
  for (const auto& [first, end] : ahead_) missing -= end - first;
  return missing;
}

}  // namespace w5xde
