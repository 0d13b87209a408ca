// The heart of the coordinator: which node computes which slots, and when a step is done. A pure state
// machine: events go in (a node joined, answered, left; time went on), leases come out. No clock, no socket,
// no lock, no float of a model.
//
//   ledger       who has which slots of one step (lease/ledger.h)
//   front        the step being computed; in `sync` nothing of a later step can be answered before it commits
//   crew         who takes part in a step: all whose turn it is, or as many as make it faster (crew.h)
//   behind       said of a node that has to be sent much before it could take part: it is called, and takes
//                part when it has that; until then the others go on without it
//   settled      said of a node that keeps so many samples that another is dear in its place
//   share        how much of what is open a node should get, by its measured speed, so that all are done at
//                once (round_shares.cpp)
//   ahead        leases beyond what a node is computing now: it never waits for the network
//   far          said of a node whose exchanges are a good part of a step: its leases come a step ahead
//   late         said of a node that takes several times as long as it used to; its blocks go to idle ones
//                too, and it gets nothing new until it answers
//   newcomer     a node that has answered nothing yet: nobody waits for it. What it has goes to others too,
//   as
//                soon as one of them has nothing to do
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/mode.h"
#include "base/slot_block.h"
#include "lease/crew.h"
#include "lease/ledger.h"
#include "lease/step_slots.h"
#include "lease/turns.h"

namespace w5xde {

struct Grant {
  NodeId node = 0;
  LeaseId lease = 0;
  Work work = Work::train;
  std::uint64_t step = 0;
  SlotBlock block;
  std::uint32_t lanes = 1;  // the machine's cores, by its nodes that take part
};

// async: how many slots a lease has, for a node that takes so long for one (0: not measured yet).
std::uint32_t async_lease_slots(double seconds_per_slot, std::uint32_t slots_max, std::uint32_t grain);

class Round {
 public:
  struct Options {
    Mode mode = Mode::sync;
    std::uint32_t slots = 8;        // a step has
    std::uint64_t slots_total = 0;  // the run has, counted from its first step; 0: no end. The last step may
                                    // be shorter
    std::uint64_t first_step = 0;   // resume here,
    std::uint64_t first_slot = 0;   // with this slot,
    SlotRanges slots_ahead = {};    // async: but not with these
    std::uint32_t grain = 0;        // every lease has so many slots, a power of two; 0: as suits the node
    std::uint64_t steps_total = 0;  // the run has; 0: no end in steps
    std::uint32_t lease_slots_max = 1u
                                    << 31;  // no lease has more, a power of two: it would not fit in a frame
    bool halves = false;                    // no lease is of a whole step: its two halves come by themselves
    bool crews = false;                     // sync: as many nodes take part as make a step faster
    bool dear = false;  // with crews: a version of the parameters takes long to send, as it seems
    bool lanes = true;  // a node computes several slots at once, where it has the cores
  };

  explicit Round(const Options& options);

  void join(NodeId node, const Place& place = {});
  // Its slots are open again.
  void leave(NodeId node);

  // What a lease and its answer cost beside the computing: where that is little, a step is given out bit by
  // bit, so that whoever is faster just now computes more of it. Not said: too much for that.
  void set_exchange_seconds(NodeId node, double seconds) { nodes_.at(node).exchange_seconds = seconds; }
  // What a step costs it beside the computing, however little it computes of it: its parameters, and one
  // exchange. Shares are such that all finish together.
  void set_step_seconds(NodeId node, double seconds) { nodes_.at(node).step_seconds = seconds; }

  // With crews. One that takes too long over it is late: others are called in its place, until it has it.
  void set_behind(NodeId node, bool behind) { nodes_.at(node).behind = behind; }
  void caught_up(NodeId node);
  void set_late(NodeId node) { nodes_.at(node).late = true; }
  bool is_behind(NodeId node) const { return nodes_.at(node).behind; }
  bool is_called(NodeId id) const;
  void set_settled(NodeId node, bool settled) { nodes_.at(node).settled = settled; }

  enum class Verdict {
    accepted,   // add it to the step
    duplicate,  // somebody else was first, or the step is over: drop it
    unknown,    // never leased to this node: its sender is broken
  };
  struct Computing {
    double seconds = 0;
    std::uint32_t lanes = 1;  // in which
  };
  // A node answered a lease, and says what it took to compute it.
  Verdict answer(NodeId id, LeaseId lease, SlotBlock block, const Computing& computing, Instant now);
  // An answer to this lease would count now. sync, training only.
  bool awaits(NodeId id, LeaseId lease) const;
  // A node found its lease void before it began with it: it lives, and has nothing to show.
  void answered_nothing(NodeId id);
  // It has this lease, and an answer to it is expected.
  bool holds(NodeId id, LeaseId lease) const;

  enum class Rejection {
    unknown,       // no such lease: its step is over
    settled,       // another node's answer to this block counts already
    leased_again,  // the slots go to somebody else, or are with somebody else already
  };
  enum class Next { anybody, another };  // who is to compute it
  // What a lease brought is of no use (not finite, too stale): its slots are leased again, to another node
  // if that is asked for and there is one.
  Rejection reject(NodeId id, LeaseId lease, SlotBlock block, Next next = Next::anybody);

  // sync: every slot of the front step is in.
  bool front_complete() const;
  // sync: nothing of it is left to begin, and a node has nothing left to answer.
  bool front_ends_soon() const;
  std::uint64_t front_step() const { return front_step_; }
  std::uint32_t slots_of(std::uint64_t step) const { return step_slots_.slots_of(step); }
  const StepSlots& step_slots() const { return step_slots_; }
  // sync: steps from this one on, none of which is open, have so many slots.
  void grow(std::uint64_t step, std::uint32_t slots);
  // sync: the front step is committed; the next one is the front. async commits by itself.
  void commit(Instant now);

  // Leases these slots for evaluation, ahead of steps that are not begun. A lease has at most
  // `lease_slots_max` of them.
  void begin_evaluation(std::uint32_t slots, Instant now, std::uint32_t lease_slots_max = 1u << 31);
  bool evaluation_complete() const { return evaluation_ && evaluation_->ledger.complete(); }
  // Answers that come later are duplicates.
  void end_evaluation();

  // No step past those that are open is begun while held; drained() when none is open any more. A checkpoint
  // of an async run is taken then, so that its cursor is one number.
  void hold(bool held) {
    held_ = held;
    look_at_all_ = true;
  }
  bool drained() const { return steps_.empty(); }
  // All slots of the run are in.
  bool finished() const { return steps_.empty() && next_step_past_end(); }

  // async: no training leases while paused; evaluations go on, and what is out may be answered.
  void pause_training(bool paused) {
    look_at_all_ = look_at_all_ || paused != paused_;
    paused_ = paused;
  }

  // New leases, to be sent in this order. Call after events, and now and then for the sake of stragglers.
  // Looks at all nodes when something else than answers happened; after answers, so seldom that an answer
  // costs the same however many nodes there are. In between, nodes that answered get what was planned for
  // them.
  std::vector<Grant> grants(Instant now);

  // What does not fit together: slots that are nowhere, leases that nobody holds. Empty: everything does. For
  // tests.
  std::string imbalance() const;

  std::uint64_t slots_leased_again() const { return slots_leased_again_; }
  std::uint64_t duplicates_dropped() const { return duplicates_dropped_; }
  std::size_t nodes() const { return nodes_.size(); }
  // Those that are not late.
  std::size_t nodes_on_time() const;
  bool late(NodeId node) const { return nodes_.at(node).late; }
  // 0 while not measured.
  double seconds_per_slot(NodeId node) const { return nodes_.at(node).seconds_per_slot; }
  double mean_seconds_per_slot() const;
  bool takes_part(NodeId node) const { return takes_part(node, nodes_.at(node)); }
  // How many nodes compute a step, and whether that is fewer than could.
  std::size_t crew_size() const;
  bool has_crew() const { return crew_.size() > 0; }
  // The step at hand takes longer than its computing and its exchanges.
  void disturbed() { crew_.disturbed(); }

 private:
  struct Step {
    Work work = Work::train;
    std::uint64_t number = 0;
    Instant begun;
    Ledger ledger;
  };
  struct Held {
    LeaseId lease = 0;
    Work work = Work::train;
    std::uint64_t step = 0;
    SlotBlock block;
    Instant since;
    std::uint32_t lanes = 1;  // that it may take

    bool is_of(const Step& other) const { return work == other.work && step == other.number; }
  };
  // How much of a step a node should get (lease/round_shares.cpp).
  struct Share {
    NodeId id = 0;
    double seconds_per_slot = 0;
    double ready = 0;             // seconds until it has answered what it holds
    std::uint32_t slots_min = 1;  // less is not worth a lease
    std::uint32_t slots = 0;      // more than it holds

    // The bit more keeps 3.9999 a 4.
    void take(double time) { slots = static_cast<std::uint32_t>((time - ready) / seconds_per_slot + 1e-6); }
  };
  struct Node {
    double seconds_per_slot = 0;  // of computing; 0: not measured yet
    std::uint32_t lanes = 1;      // in which its last lease was computed,
    std::uint32_t lanes_max = 1;  // of so many that it might have taken
    std::uint64_t answers = 0;
    Instant answered_at;                 // last
    double turnaround = 0;               // from lease (or the step's begin) to answer, a slot
    double deviation = 0.25;             // of a lease's seconds from the estimate, relative
    double first_lag = 0, next_lag = 0;  // seconds that the first answer of a step, and one after another,
                                         // took longer than the computing
    double exchange_seconds = std::numeric_limits<double>::infinity();
    double step_seconds = 0;
    double left_out_seconds = 0;  // of steps that it might have taken part in, by as many as it was one of
    std::string host;
    bool in_crew = false;
    bool called = false;  // into the crew
    bool behind = false;
    bool settled = false;
    bool late = false;
    std::optional<Held> missed;  // not measured yet: a step was committed without its answer to this
    std::vector<Held> held;
    Share planned;  // of the step planned_for: what it did not get yet
    std::optional<std::uint64_t> planned_for;

    bool measured() const { return answers > 0; }

    std::uint32_t held_slots() const;
    std::uint32_t held_slots(const Step& step) const;
    std::size_t held_leases(const Step& step) const;
  };

  bool next_step_past_end() const;
  Ledger ledger_of(std::uint64_t step) const;
  void open_steps(Instant now);
  void take_turns(Instant now, std::uint64_t leases_min);
  Step* step_of(Work work, std::uint64_t number);
  void measure(Node& node, const Held& held, const Computing& computing, Instant now);

  // Who takes part (lease/round_crew.cpp).
  bool takes_part(NodeId id, const Node& node) const;
  bool could_work(NodeId id, const Node& node) const { return !node.late && !turns_.rests(id); }
  Crew::Pool crew_pool() const;
  bool crew_takes_turns() const;
  std::size_t nodes_at_once() const;
  double crew_seconds_per_slot() const;
  double whole_step_seconds(const Node& node) const;
  std::set<NodeId> best_nodes(std::size_t count) const;
  void choose_crew();

  enum class To { all, far };
  double mean_seconds(const std::function<bool(NodeId, const Node&)>& counts) const;
  static double fading(const Node& node);
  double ready_in(const Node& node, const Step& step, double seconds_per_slot, bool alike, Instant now) const;
  std::vector<Share> candidates(const Step& step, Instant now) const;
  std::vector<Share> shares_of(const Step& step, Instant now) const;
  std::uint32_t capacity_of(const Node& node, const Step& step, std::uint32_t lanes) const;
  bool is_ahead(Work work, std::uint64_t step) const { return work == Work::train && step > front_step_; }
  static std::uint32_t portion_of(const Node& node, std::uint32_t share, std::uint32_t lanes);
  bool supplied(const Node& node, const Step& step) const;
  bool drop_small_blocks(Share& share, const Step& step) const;
  void give_to_first_done(std::vector<Share>& shares, std::uint32_t slots) const;
  void share_out(Step& step, Instant now, To to, std::vector<Grant>& grants);
  bool lease_some(Share& share, Step& step, Instant now, std::vector<Grant>& grants);

  // A node's answer to a block of a step was of no use, and another node's is wanted.
  struct Refused {
    NodeId by = 0;
    std::uint64_t step = 0;
    SlotBlock block;
    bool asked = false;  // another node was
  };
  bool has_refused(NodeId id, std::uint64_t step, SlotBlock block) const;
  void ask_others(Instant now, std::vector<Grant>& grants);
  bool must_look_at_all(Instant now) const;
  void grant_to_all(Instant now, std::vector<Grant>& grants);
  void grant_as_planned(NodeId id, Instant now, std::vector<Grant>& grants);
  void top_up(NodeId id, Node& node, Instant now, std::vector<Grant>& grants);
  bool may_help(NodeId id, const Node& node, bool late) const;
  struct Straggling {
    Step* step = nullptr;
    SlotBlock block;
    bool late = false;  // else a newcomer's
  };
  std::vector<Straggling> stragglers(Instant now);
  std::optional<NodeId> helper_for(const Straggling& straggling) const;
  void help_stragglers(Instant now, std::vector<Grant>& grants);
  static bool overdue(const Node& node, const Held& held, const Step* step, Instant now);
  std::uint32_t lanes_of(NodeId id) const;
  Grant grant(NodeId id, const Step& step, SlotBlock block, LeaseId lease, Instant now);

  Options options_;
  StepSlots step_slots_;
  std::map<NodeId, Node> nodes_;
  Turns turns_;
  Crew crew_;
  bool crew_rotates_ = false;           // it is of those whose turn it is; else those who are in it stay
  std::optional<double> guessed_from_;  // what an exchange took when it was guessed how many take part
  Instant committed_at_;
  std::deque<Step> steps_;  // open ones, by number; sync: the front and the one ahead
  std::optional<Step> evaluation_;
  std::uint64_t front_step_;  // sync: being computed; async: the oldest open one
  std::uint64_t next_step_;   // to be opened
  LeaseId next_lease_ = 1;
  std::vector<Refused> refused_;  // of open steps
  bool held_ = false;
  bool paused_ = false;
  bool look_at_all_ = true;  // when leases are granted next
  Instant looked_at_all_;
  std::size_t workers_ = 0;        // that took part then
  std::vector<NodeId> answered_;   // since leases were granted last
  std::size_t answers_since_ = 0;  // all nodes were looked at
  std::uint64_t slots_leased_again_ = 0;
  std::uint64_t duplicates_dropped_ = 0;
};

}  // namespace w5xde
