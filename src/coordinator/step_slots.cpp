#include "coordinator/step_slots.h"

#include <algorithm>
#include <cassert>

namespace w5xde {

StepSlots::StepSlots(const Options& options) : options_(options), sizes_{{.slots = options.slots}} {}

void StepSlots::grow(std::uint64_t step, std::uint32_t slots) {
  assert(sizes_.size() == 1 || step > sizes_.back().step);
  sizes_.push_back({step, first_slot_of(step), slots});
}

const StepSlots::Size& StepSlots::size_of(std::uint64_t step) const {
  return *std::find_if(sizes_.rbegin(), sizes_.rend() - 1,
                       [&](const Size& size) { return size.step <= step; });
}

std::uint64_t StepSlots::first_slot_of(std::uint64_t step) const {
  const Size& size = size_of(step);
  return size.first_slot + (step - size.step) * size.slots;
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
  std::uint64_t steps = options_.steps_total;
  if (options_.slots_total == 0) return steps;
  // The size that the run's last slot is in.
  const Size& last = *std::find_if(sizes_.rbegin(), sizes_.rend() - 1,
                                   [&](const Size& size) { return size.first_slot < options_.slots_total; });
  const std::uint64_t by_slots =
      last.step + (options_.slots_total - last.first_slot + last.slots - 1) / last.slots;
  return steps == 0 ? by_slots : std::min(steps, by_slots);
}

}  // namespace w5xde
