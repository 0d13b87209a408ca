// The heart of the coordinator: which node computes which slots, and when a step is done. A pure state
// machine: events go in (a node joined, answered, left; time went on), leases come out. No clock, no socket,
// no lock, no float of a model.
//
//   ahead      leases beyond what a node computes now: it never waits for the network
//   far        said of a node whose exchanges are a good part of a step: its leases are sent a step ahead
//   newcomer   a node that has answered nothing yet: nobody waits for it
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lease/open_steps.h"
#include "lease/roster.h"
#include "lease/stragglers.h"

namespace w5xde {

class Round {
 public:
  using Options = RoundOptions;

  explicit Round(const Options& options);

  // `swap_in_seconds`: as Pace has it, estimated.
  void join(NodeId node, const Place& place = {}, double swap_in_seconds = 0);
  // Its slots are open again.
  void leave(NodeId node);

  // What is known of the node's link (lease/pace.h).
  void set_exchange_seconds(NodeId node, double seconds) { roster_.at(node).pace.exchange_seconds = seconds; }
  void set_step_seconds(NodeId node, double seconds) { roster_.at(node).pace.step_seconds = seconds; }
  void set_swap_in_seconds(NodeId node, double seconds) { roster_.at(node).pace.swap_in_seconds = seconds; }

  // Whether it has the parameters that it needs to begin. If not, it catches up before it works.
  void set_up_to_date(NodeId node, bool up_to_date) { roster_.set_up_to_date(node, up_to_date); }
  void caught_up(NodeId node);
  // It takes too long to catch up: another one does in its place.
  void set_late(NodeId node) { Roster::set_late(roster_.at(node)); }
  // It gets no more leases.
  void set_leaving(NodeId node);

  enum class Verdict {
    accepted,   // add it to the step
    duplicate,  // somebody else was first, or the step is over: drop it
    unknown,    // never leased to this node: its sender is broken
  };
  // A node answered a lease, and says what it took to compute it.
  Verdict answer(NodeId node, LeaseId lease, SlotBlock block, const Computing& computing, Instant now);
  // An answer to this lease would count now. sync, training only.
  bool awaits(NodeId node, LeaseId lease) const;
  // A node found its lease void before it began with it: it lives, and has nothing to show.
  void answered_nothing(NodeId node) {
    if (roster_.find(node) != nullptr) heard_from(node);
  }
  // It has this lease, and an answer to it is expected.
  bool holds(NodeId node, LeaseId lease) const;

  enum class Rejection {
    unknown,       // no such lease: its step is over
    settled,       // another node's answer to this block counts already
    leased_again,  // the slots go to somebody else, or are with somebody else already
  };
  enum class Next { anybody, another };  // who is to compute it
  // What a lease brought is of no use (not finite, too stale): its slots are leased again, if possible to
  // `next`.
  Rejection reject(NodeId node, LeaseId lease, SlotBlock block, Next next = Next::anybody);

  // sync: every slot of the front step is in.
  bool front_complete() const { return steps_.front_complete(); }
  // sync: nothing of it is left to begin, and a node has nothing left to answer.
  bool front_ends_soon() const;
  std::uint64_t front_step() const { return steps_.front(); }
  std::uint32_t slots_of(std::uint64_t step) const { return step_slots().slots_of(step); }
  const StepSlots& step_slots() const { return steps_.slots(); }
  // sync: steps from this one on, none of which is open, have `slots` slots.
  void grow(std::uint64_t step, std::uint32_t slots);
  // sync: the front step is committed; the next one is the front. async commits by itself.
  void commit(Instant now);

  // Leases these slots for evaluation, at most `lease_slots_max` at once, ahead of steps not yet begun.
  void begin_evaluation(std::uint32_t slots, Instant now, std::uint32_t lease_slots_max = 1u << 31);
  bool evaluation_complete() const { return steps_.evaluation() && steps_.evaluation()->ledger.complete(); }
  // Answers that arrive later are duplicates.
  void end_evaluation();

  // No step past those that are open is begun while held; drained() when none is open any more. A checkpoint
  // of an async run is taken then, so that its cursor is one number.
  void hold(bool held);
  bool drained() const { return steps_.training().empty(); }
  // All slots of the run are in.
  bool finished() const { return drained() && steps_.all_opened(); }

  // async: no training leases while paused; evaluations go on, and what is out may be answered.
  void pause_training(bool paused);

  // New leases, to be sent in this order. Call after events, and every kTick for the sake of stragglers.
  // After answers alone, all nodes are looked at so rarely that an answer costs the same however many nodes
  // there are; in between, nodes that answered get what was planned for them.
  std::vector<Grant> grants(Instant now);

  // Who works, and what is known of each node.
  const Roster& roster() const { return roster_; }
  std::size_t nodes() const { return roster_.members().size(); }
  // Those that are neither late nor leaving.
  std::size_t nodes_on_time() const;
  // The step takes longer than its computing and its exchanges, for another reason.
  void disturbed() { roster_.disturbed(); }

  // What does not fit together: slots that are nowhere, leases that nobody holds. Empty: all does. For tests.
  std::string imbalance() const;
  std::uint64_t slots_leased_again() const { return slots_leased_again_; }
  std::uint64_t duplicates_dropped() const { return duplicates_dropped_; }

 private:
  enum class To { all, far };

  void heard_from(NodeId node);
  void open_steps(Instant now);
  bool is_ahead(const Step& step) const { return step.work == Work::train && step.number > steps_.front(); }

  double ready_in(const Member& member, const Step& step, double seconds_per_slot, bool alike,
                  Instant now) const;
  std::vector<Share> candidates(const Step& step, Instant now) const;
  std::uint32_t capacity_of(const Member& member, const Step& step, std::uint32_t lanes) const;
  static bool supplied(const Member& member, const Step& step);
  void share_out(Step& step, Instant now, To to, std::vector<Grant>& grants);
  bool lease_some(Share& share, Step& step, Instant now, std::vector<Grant>& grants);

  void grant_to_all(Instant now, std::vector<Grant>& grants);
  void grant_as_planned(NodeId node, Instant now, std::vector<Grant>& grants);
  void top_up(NodeId node, Member& member, Instant now, std::vector<Grant>& grants);
  void ask_others(Instant now, std::vector<Grant>& grants);
  void help_stragglers(Instant now, std::vector<Grant>& grants);
  Grant next_grant(NodeId node, const Step& step, Instant now) const;
  void give(const Grant& grant, std::vector<Grant>& grants);

  Options options_;
  OpenSteps steps_;
  Roster roster_;
  std::vector<Refusal> refusals_;
  Instant committed_at_;
  LeaseId next_lease_ = 1;
  bool held_ = false;
  bool paused_ = false;
  bool look_at_all_ = true;  // when leases are granted next
  Instant looked_at_all_;
  std::size_t workers_ = 0;        // that worked then
  std::vector<NodeId> answered_;   // since leases were granted last
  std::size_t answers_since_ = 0;  // all nodes were looked at
  std::uint64_t slots_leased_again_ = 0;
  std::uint64_t duplicates_dropped_ = 0;
};

}  // namespace w5xde
