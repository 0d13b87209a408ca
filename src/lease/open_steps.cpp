#include "lease/open_steps.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace w5xde {

OpenSteps::OpenSteps(Options options)
    : options_(std::move(options)),
      step_slots_(options_.slots),
      front_(options_.slots.first_step),
      next_(options_.slots.first_step) {}

Step* OpenSteps::find(Work work, std::uint64_t number) {
  if (work == Work::evaluate) return evaluation_ ? &*evaluation_ : nullptr;
  const auto found = std::ranges::lower_bound(steps_, number, {}, &Step::number);
  return found == steps_.end() || found->number != number ? nullptr : &*found;
}

bool OpenSteps::front_complete() const {
  return !steps_.empty() && steps_.front().number == front_ && steps_.front().ledger.complete();
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
  find_front();
}

void OpenSteps::close_front(Instant now) {
  steps_.pop_front();
  ++front_;
  if (!steps_.empty()) steps_.front().begun = now;
}

void OpenSteps::close(std::uint64_t number) {
  steps_.erase(std::ranges::lower_bound(steps_, number, {}, &Step::number));
  find_front();
}

void OpenSteps::drop_complete_back() {
  if (steps_.back().ledger.complete()) steps_.pop_back();
  find_front();
}

std::uint32_t OpenSteps::release(NodeId node) {
  std::uint32_t opened = 0;
  for (Step& step : steps_) opened += step.ledger.release(node);
  if (evaluation_) evaluation_->ledger.release(node);
  return opened;
}

std::string OpenSteps::imbalance(const std::function<bool(const Grant&)>& holds) const {
  const auto look_at = [&](const Step& step) -> std::string {
    if (!step.ledger.balanced()) return "the slots of step " + std::to_string(step.number) + " do not add up";
    for (const auto& [first, entry] : step.ledger.entries()) {
      for (const Grant& grant : entry.holders) {
        if (!grant.is_of(step.work, step.number) || grant.block != entry.block || !holds(grant))
          return "nobody holds lease " + std::to_string(grant.lease);
      }
    }
    return {};
  };
  for (const Step& step : steps_) {
    if (std::string wrong = look_at(step); !wrong.empty()) return wrong;
  }
  return evaluation_ ? look_at(*evaluation_) : std::string();
}

}  // namespace w5xde
