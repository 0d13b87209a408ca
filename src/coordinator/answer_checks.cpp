#include "coordinator/answer_checks.h"

#include <fmt/format.h>

#include <algorithm>

namespace w5xde {

namespace {

constexpr std::size_t kUnableKept = 20;

}  // namespace

Error AnswerChecks::refuted(const Contribution& contribution) {
  const SlotBlock block = contribution.block;
  return corrupt(fmt::format("its gradient of slots {}…{} of step {} is not finite, another node's is",
                             block.first_slot, block.end() - 1, contribution.step));
}

std::optional<Error> AnswerChecks::not_finite(const Contribution& contribution, NodeId node,
                                              const std::string& identity, bool alone) {
  const SlotBlock block = contribution.block;
  const auto said = doubts_.add(contribution.step, block, node, identity);
  const bool by_one = said == Doubts::Said::twice_by_one && alone;
  if (said != Doubts::Said::by_two && !by_one) return std::nullopt;
  return diverged(
      fmt::format("training diverged at step {}: the gradient of slots {}…{} is not finite, twice{}. Lower "
                  "--learning-rate or set --clip-norm, and go on from the last checkpoint",
                  contribution.step, block.first_slot, block.end() - 1,
                  by_one ? " (only one node was there to compute it)" : ""));
}

bool AnswerChecks::unable(const std::string& identity, const std::string& reason,
                          const std::optional<LeasesOut::Slots>& slots) {
  const bool agreed = std::ranges::any_of(unable_, [&](const Unable& before) {
    const bool same_slots = before.slots && slots && before.slots->step == slots->step &&
                            before.slots->block.overlaps(slots->block);
    return before.who != identity && (same_slots || before.reason == reason);
  });
  unable_.push_back({identity, reason, slots});
  if (unable_.size() > kUnableKept) unable_.pop_front();
  return agreed;
}

}  // namespace w5xde
