#include "lease/stragglers.h"

#include <algorithm>
#include <tuple>

#include "lease/tuning.h"

namespace w5xde {

namespace {

bool overdue(const Member& member, const Grant& grant, std::optional<Instant> begun, Instant now) {
  const double age = seconds_of(now - Pace::could_begin(grant, begun));
  if (member.pace.turnaround == 0) return age > kLateSecondsUnmeasured;
  // What it holds before this block comes first.
  const double due = member.pace.turnaround * std::max(member.held_slots(), grant.block.slot_count);
  return age > std::max(kLateSeconds, kLateFactor * due);
}

// A node that was never measured may be about to answer: only nodes that work anyway, and are warm, compute
// its block as well.
bool may_help(const Member& member, bool late) {
  return member.present() && (late || (member.works() && member.pace.warm()));
}

}  // namespace

bool was_refused(const std::vector<Refusal>& refusals, NodeId by, std::uint64_t step, SlotBlock block) {
  return std::ranges::any_of(refusals, [&](const Refusal& refusal) {
    return refusal.by == by && refusal.step == step && refusal.block.overlaps(block);
  });
}

std::vector<Straggler> find_stragglers(Roster& roster, OpenSteps& steps, bool ahead, Instant now) {
  std::vector<Straggler> found;
  for (auto& [node, member] : roster.members()) {
    for (const Grant& grant : member.held) {
      if (ahead && grant.work == Work::train && grant.step > steps.front()) continue;
      Step* step = steps.find(grant.work, grant.step);
      // Also where the step is over: what is open, of this step or another, may be left to this very node.
      if (member.present() && overdue(member, grant, steps.begun(grant), now)) Roster::set_late(member);
      if (step == nullptr || step->ledger.complete() || step->ledger.open_slots() > 0) continue;
      const bool late = !member.present();
      if (late || !member.pace.measured()) found.push_back({step, grant.block, late});
    }
  }
  std::ranges::stable_sort(found, {}, [](const Straggler& straggler) {
    return std::tuple(straggler.step->work, straggler.step->number, !straggler.late);
  });
  return found;
}

std::optional<NodeId> helper_for(const Straggler& straggler, const Roster& roster,
                                 const std::vector<Refusal>& refusals) {
  const auto is_new = [&](NodeId node) {
    return !was_refused(refusals, node, straggler.step->number, straggler.block);
  };
  const bool anybody_new = std::ranges::any_of(roster.members(), [&](const auto& entry) {
    return may_help(entry.second, straggler.late) && is_new(entry.first);
  });
  std::optional<NodeId> waiting;
  for (const auto& [node, member] : roster.members()) {
    if (!may_help(member, straggler.late) || (anybody_new && !is_new(node))) continue;
    if (member.held.empty()) return node;
    // A node that holds blocks of the step ahead is idle all the same while this one is not done.
    const auto is_busy = [&](const Grant& grant) {
      return grant.work == straggler.step->work && grant.step <= straggler.step->number;
    };
    if (!waiting && std::ranges::none_of(member.held, is_busy)) waiting = node;
  }
  return waiting;
}

bool is_expected(const Straggler& straggler, const Roster& roster) {
  const Ledger::Entry& entry = straggler.step->ledger.entries().at(straggler.block.first_slot);
  return entry.answered || std::ranges::any_of(entry.holders, [&](const Grant& grant) {
           const Member& member = roster.at(grant.node);
           // A node that was never measured is no help for another such one.
           return member.present() && (straggler.late || member.pace.measured());
         });
}

}  // namespace w5xde
