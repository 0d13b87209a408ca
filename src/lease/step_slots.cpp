#include "lease/step_slots.h"

#include <algorithm>
#include <cassert>

namespace w5xde {

StepSlots::StepSlots(const Options& options) : options_(options), sizes_{{.slots = options.slots}} {}

void StepSlots::grow(std::uint64_t step, std::uint32_t slots) {
  assert(sizes_.size() == 1 || step > sizes_.back().step);
  sizes_.push_back({step, slots});
}

const StepSlots::Size& StepSlots::size_of(std::uint64_t step) const {
  return *std::find_if(sizes_.rbegin(), sizes_.rend() - 1,
                       [&](const Size& size) { return size.step <= step; });
}

std::uint64_t StepSlots::first_slot_of(std::uint64_t step) const {
  assert(step >= options_.first_step);
  std::uint64_t slot = options_.first_slot, at = options_.first_step;
  for (auto size = sizes_.begin(); size != sizes_.end(); ++size) {
    const bool last = size + 1 == sizes_.end();
    const std::uint64_t end = last ? step : std::min(step, (size + 1)->step);
    if (end <= at) continue;
    slot += (end - at) * size->slots;
    at = end;
  }
  return options_.slots_total == 0 ? slot
                                   : std::min(slot, std::max(options_.slots_total, options_.first_slot));
}

std::uint32_t StepSlots::slots_of(std::uint64_t step) const {
  const std::uint32_t full = full_slots_of(step);
  if (options_.steps_total > 0 && step >= options_.steps_total) return 0;
  if (options_.slots_total == 0) return full;
  const std::uint64_t before = first_slot_of(step);
  if (before >= options_.slots_total) return 0;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(full, options_.slots_total - before));
}

std::uint64_t StepSlots::steps() const {
  if (options_.slots_total == 0) return options_.steps_total;
  std::uint64_t step = options_.first_step, slot = options_.first_slot;
  for (auto size = sizes_.begin(); size != sizes_.end() && slot < options_.slots_total; ++size) {
    const std::uint64_t needed = (options_.slots_total - slot + size->slots - 1) / size->slots;
    const bool last = size + 1 == sizes_.end();
    const std::uint64_t end = last ? step + needed : std::clamp((size + 1)->step, step, step + needed);
    slot += (end - step) * size->slots;
    step = end;
  }
  return options_.steps_total == 0 ? step : std::min(options_.steps_total, step);
}

}  // namespace w5xde
