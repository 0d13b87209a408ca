#include "coordinator/answers.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"

namespace w5xde {

namespace {

constexpr std::size_t kUnableKept = 20;

std::string slots_of(const Contribution& contribution) {
  const SlotBlock block = contribution.block;
  return fmt::format("slots {}…{} of step {}", block.first_slot, block.end() - 1, contribution.step);
}

Error refuted(const Contribution& contribution) {
  return corrupt("its gradient of {} is not finite, another node's is", slots_of(contribution));
}

}  // namespace

Round::Verdict Answers::answer(const Session& session, const Contribution& contribution) {
  const Computing computing{static_cast<double>(contribution.compute_ns) * 1e-9, contribution.lanes};
  return round_.answer(session.id(), contribution.lease_id, contribution.block, computing, clock_.now());
}

Result<bool> Answers::counts(Session& session, const Contribution& contribution, Quality quality) {
  if (quality == Quality::not_finite) {
    W5XDE_CHECK(bad_answer(session, contribution));
    return false;
  }
  if (quality == Quality::too_stale &&
      round_.reject(session.id(), contribution.lease_id, contribution.block) != Round::Rejection::unknown)
    return false;
  const auto verdict = answer(session, contribution);
  if (verdict == Round::Verdict::unknown) return corrupt("a contribution to a lease that it does not have");
  if (verdict == Round::Verdict::duplicate) return false;
  for (const NodeId id : doubts_.refuted_by(contribution.step, contribution.block, session.identity())) {
    if (Session* node = sessions_.find(id)) node->close(refuted(contribution));
  }
  tally_.counted(session.id(), contribution);
  return true;
}

// A broken node, or a run that has diverged. Another node computes the same slots, and decides.
Status Answers::bad_answer(Session& session, const Contribution& contribution) {
  const NodeId id = session.id();
  const SlotBlock block = contribution.block;
  const auto rejection = round_.reject(id, contribution.lease_id, block, Round::Next::another);
  if (rejection == Round::Rejection::unknown) return {};
  if (rejection == Round::Rejection::settled) return refuted(contribution);
  tally_.event(fmt::format("the gradient that {} computed of {} is not finite", session.name(),
                           slots_of(contribution)));
  const auto said = doubts_.add(contribution.step, block, id, session.identity());
  const bool by_one = said == Doubts::Said::twice_by_one && round_.nodes_on_time() <= 1;
  if (said != Doubts::Said::by_two && !by_one) return {};
  return diverged(
      "training diverged at step {}: the gradient of slots {}…{} is not finite, twice{}. Lower "
      "--learning-rate or set --clip-norm, and go on from the last checkpoint",
      contribution.step, block.first_slot, block.end() - 1,
      by_one ? " (only one node was there to compute it)" : "");
}

Result<bool> Answers::evaluation_counts(Session& session, const Contribution& contribution) {
  const auto verdict = answer(session, contribution);
  if (verdict == Round::Verdict::unknown) return corrupt("an evaluation that nobody asked for");
  return verdict == Round::Verdict::accepted;
}

// An answer without numbers is right when the lease is void: the step was committed without it, or the
// evaluation is over. For a lease that stands it means that the node will not compute: the node is dropped.
Status Answers::is_void(Session& session, const Contribution& contribution) {
  if (round_.holds(session.id(), contribution.lease_id))
    return corrupt("nothing in answer to a lease that stands");
  round_.answered_nothing(session.id());
  return {};
}

// One node that cannot compute may be broken; what two different nodes cannot, or the last one, nobody will.
bool Answers::nobody_can(const Session& session, const std::string& reason) {
  const std::string who = session.identity();
  const auto slots = session.oldest_lease();
  const bool agreed = std::ranges::any_of(unable_, [&](const Unable& before) {
    const bool same_slots = before.slots && slots && before.slots->step == slots->step &&
                            before.slots->block.overlaps(slots->block);
    return before.who != who && (same_slots || before.reason == reason);
  });
  unable_.push_back({who, reason, slots});
  if (unable_.size() > kUnableKept) unable_.pop_front();
  return agreed || round_.nodes() == 0;
}

}  // namespace w5xde
