// Who is late, and who computes the same slots in its place.
#include <algorithm>
#include <tuple>

#include "lease/round.h"

namespace w5xde {

namespace {

// How much longer than usual makes a node late; never before the floor, which is many a scheduler's slice.
constexpr double kLateFactor = 4;
constexpr double kLateSeconds = 0.1;
constexpr double kLateSecondsUnmeasured = 5;
// A first answer, with everything cold, says little of how fast a node is.
constexpr std::uint64_t kWarmAnswers = 2;

}  // namespace

bool Round::overdue(const Node& node, const Held& held, const Step* step, Instant now) {
  const double age = seconds_of(now - (step == nullptr ? held.since : std::max(held.since, step->begun)));
  if (node.turnaround == 0) return age > kLateSecondsUnmeasured;
  // What it holds before this block comes first.
  const double due = node.turnaround * std::max(node.held_slots(), held.block.slot_count);
  return age > std::max(kLateSeconds, kLateFactor * due);
}

// A newcomer may be about to answer: only nodes that take part anyway, and are warm, compute the same.
bool Round::may_help(NodeId id, const Node& node, bool late) const {
  return !node.late && (late || (takes_part(id, node) && node.answers >= kWarmAnswers));
}

// What late nodes and newcomers hold, of steps of which nothing is left to begin. Step by step, what is late
// first.
std::vector<Round::Straggling> Round::stragglers(Instant now) {
  std::vector<Straggling> found;
  for (auto& [id, node] : nodes_) {
    for (const Held& held : node.held) {
      if (options_.mode == Mode::sync && is_ahead(held.work, held.step)) continue;
      Step* step = step_of(held.work, held.step);
      // Whatever became of the step: what is open, of this one or another, may be left to this very node.
      if (!node.late) node.late = overdue(node, held, step, now);
      if (step == nullptr || step->ledger.complete() || step->ledger.open_slots() > 0) continue;
      if (node.late || !node.measured()) found.push_back({step, held.block, node.late});
    }
  }
  std::ranges::stable_sort(found, {}, [](const Straggling& straggling) {
    return std::tuple(straggling.step->work, straggling.step->number, !straggling.late);
  });
  return found;
}

std::optional<NodeId> Round::helper_for(const Straggling& straggling) const {
  const auto may_try = [&](NodeId id, const Node& node) {
    return may_help(id, node, straggling.late) && !has_refused(id, straggling.step->number, straggling.block);
  };
  // Where all who could help have failed at it before, they are asked again.
  const bool anybody_new =
      std::ranges::any_of(nodes_, [&](const auto& member) { return may_try(member.first, member.second); });
  std::optional<NodeId> waiting;
  for (const auto& [id, node] : nodes_) {
    if (anybody_new ? !may_try(id, node) : !may_help(id, node, straggling.late)) continue;
    if (node.held.empty()) return id;
    // Nodes that hold blocks of the step ahead are idle all the same while this one is not done.
    const auto is_busy = [&](const Held& held) {
      return held.work == straggling.step->work && held.step <= straggling.step->number;
    };
    if (!waiting && std::ranges::none_of(node.held, is_busy)) waiting = id;
  }
  return waiting;
}

// Blocks of late nodes and of newcomers go to idle ones as well. The first answer counts.
void Round::help_stragglers(Instant now, std::vector<Grant>& grants) {
  const Straggling* helpless = nullptr;  // nobody has time for the like of this
  const auto found = stragglers(now);
  for (const Straggling& straggling : found) {
    Step& step = *straggling.step;
    if (helpless != nullptr && helpless->step == &step && helpless->late == straggling.late) continue;
    const auto& entry = step.ledger.entries().at(straggling.block.first_slot);
    // One helper is enough, as long as it is not late itself. A newcomer is no help for a newcomer.
    const auto is_expected = [&](const Ledger::Holder& holder) {
      const Node& node = nodes_.at(holder.node);
      return !node.late && (straggling.late || node.measured());
    };
    if (entry.answered || std::ranges::any_of(entry.holders, is_expected)) continue;
    const auto helper = helper_for(straggling);
    if (!helper) {
      helpless = &straggling;
      continue;
    }
    const LeaseId lease = next_lease_++;
    step.ledger.lease_again(straggling.block, {*helper, lease, now});
    slots_leased_again_ += straggling.block.slot_count;
    grants.push_back(grant(*helper, step, straggling.block, lease, now));
  }
}

}  // namespace w5xde
