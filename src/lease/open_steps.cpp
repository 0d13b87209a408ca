#include "lease/open_steps.h"

#include <algorithm>
#include <bit>

namespace w5xde {

OpenSteps::OpenSteps(const RoundOptions& options)
    : options_(options),
      step_slots_({.slots = options.slots,
                   .first_step = options.first_step,
                   .first_slot = options.first_slot,
                   .slots_total = options.slots_total,
                   .steps_total = options.steps_total}),
      next_(options.first_step) {}

Step* OpenSteps::find(Work work, std::uint64_t number) {
  if (work == Work::evaluate) return evaluation_ ? &*evaluation_ : nullptr;
  const auto found = std::ranges::lower_bound(steps_, number, {}, &Step::number);
  return found == steps_.end() || found->number != number ? nullptr : &*found;
}

std::optional<Instant> OpenSteps::begun(const Grant& grant) {
  const Step* step = find(grant.work, grant.step);
  return step == nullptr ? std::nullopt : std::optional(step->begun);
}

Ledger OpenSteps::ledger_of(std::uint64_t step) const {
  const std::uint32_t slots = step_slots_.slots_of(step);
  const std::uint32_t half = std::max(1u, std::bit_ceil(slots) / 2);
  Ledger ledger(slots, options_.halves ? std::min(half, options_.lease_slots_max) : options_.lease_slots_max);
  const std::uint64_t first = step_slots_.first_slot_of(step);
  for (const auto& [from, end] : options_.slots_ahead) {
    for (std::uint64_t slot = std::max(from, first); slot < std::min(end, first + slots); ++slot)
      ledger.skip(static_cast<std::uint32_t>(slot - first));
  }
  return ledger;
}

void OpenSteps::open(Instant now) {
  steps_.push_back({.number = next_, .begun = now, .ledger = ledger_of(next_)});
  ++next_;
}

void OpenSteps::close_front(Instant now) {
  steps_.pop_front();
  if (!steps_.empty()) steps_.front().begun = now;
}

void OpenSteps::close(std::uint64_t number) {
  steps_.erase(std::ranges::lower_bound(steps_, number, {}, &Step::number));
}

void OpenSteps::drop_complete_back() {
  if (steps_.back().ledger.complete()) steps_.pop_back();
}

std::uint32_t OpenSteps::release(NodeId node) {
  std::uint32_t opened = 0;
  for (Step& step : steps_) opened += step.ledger.release(node);
  if (evaluation_) evaluation_->ledger.release(node);
  return opened;
}

}  // namespace w5xde
