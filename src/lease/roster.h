// Who works now, and why not the others.
//
//   standing   what a node is to the current step; it has one, with a reason in words
//   machine    nodes that share cores. One node can use all of them (its lanes), or several share them
//   turn       where a machine has more nodes than can work and bringing one in is free, they work in turns
//   team       the nodes that work where fewer than all make a step faster (lease/team_size.h)
//   swap-in    bringing a node in (Pace::swap_in_seconds). Where it is expensive, those who work stay
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "lease/apportion.h"
#include "lease/ledger.h"
#include "lease/pace.h"
#include "lease/team_size.h"

namespace w5xde {

// A node becomes late or leaving from any other standing. Late ends when it answers, or has the parameters;
// leaving ends with the node.
enum class Standing {
  standby,      // could work, but the step is faster without it → catching_up, working
  catching_up,  // is to work, and is sent the parameters first → working, standby
  working,      // computes in the current step → standby, catching_up
  late,         // it takes too long to answer, or to catch up: gets nothing new meanwhile
  leaving,      // said that it leaves
};
std::string_view name_of(Standing standing);

// Where a node computes.
struct Place {
  std::string name;         // of the node, for people
  std::string machine;      // empty: not known, and so nobody else's
  std::uint32_t lanes = 0;  // how many slots its machine computes at full speed at once; 0: any number
  std::string host;         // the address it comes from: nodes that share it share a link
};

// A node as the pool sees it.
struct Member {
  Place place;
  Pace pace;
  Standing standing = Standing::standby;
  bool up_to_date = true;  // it has the parameters that it needs to begin
  bool in_team = false;
  bool resting = false;  // others of its machine have their turn
  std::uint64_t slots_leased = 0;
  std::uint64_t leases_this_turn = 0;
  std::vector<Grant> held;      // leases that it has not answered
  std::optional<Grant> missed;  // never measured: a step was committed without its answer to this
  Share planned;                // of the step planned_for: what it did not get yet
  std::optional<std::uint64_t> planned_for;

  bool works() const { return standing == Standing::working; }
  bool present() const { return standing != Standing::late && standing != Standing::leaving; }
  std::uint32_t held_slots() const;

  // What it holds of one step.
  struct Holding {
    std::uint32_t slots = 0, leases = 0;
    const Grant* first = nullptr;
  };
  Holding holding(Work work, std::uint64_t step) const;
};

class Roster {
 public:
  struct Options {
    bool fastest = false;  // as many nodes work as make a step faster; else all
    bool lanes = true;     // a node computes several slots at once, where it has the cores
  };
  explicit Roster(const Options& options) : options_(options) {}

  void join(NodeId node, const Place& place, double swap_in_seconds);
  void leave(NodeId node);

  std::map<NodeId, Member>& members() { return members_; }
  const std::map<NodeId, Member>& members() const { return members_; }
  Member& at(NodeId node) { return members_.at(node); }
  const Member& at(NodeId node) const { return members_.at(node); }
  // Null when there is no such node.
  Member* find(NodeId node);

  // "node-1 computes with all cores of this machine"; empty where there is nothing to explain.
  std::string reason(NodeId node) const;

  void set_up_to_date(NodeId node, bool up_to_date);
  void set_leaving(NodeId node) { members_.at(node).standing = Standing::leaving; }
  // It keeps others waiting; and: it does not any more.
  static void set_late(Member& member);
  void clear_late(Member& member);

  // The node was given work. In the next turn, the nodes that were given the least work.
  static void leased(Member& member, std::uint32_t slots);
  // A turn that has lasted for its time and for `leases_min` leases to each node is over. The place of a node
  // that is late is taken at once.
  void rotate(Instant now, std::uint64_t leases_min);
  // Chooses the team for a step of `step_slots` slots, where there is one. All change at once, when those who
  // come in have the parameters.
  void choose_team(std::uint32_t step_slots);

  // A step of `step_slots` slots was committed, `seconds` after the one before.
  void step_done(double seconds, std::uint32_t step_slots);
  // The current step is no measure of how many nodes should work.
  void disturbed() { team_.disturbed(); }

  // Fewer nodes work than could.
  bool limited() const { return team_.size() > 0; }
  std::size_t working() const;
  // How many of its machine's lanes the node has, shared with the others there that work; 1 at least.
  std::uint32_t lanes(const Member& member) const;
  // Of all nodes that were measured, or of those that work; 0: none was.
  double mean_seconds_per_slot(bool of_working = false) const;

 private:
  struct Machine {
    std::uint32_t lanes = 0;
    std::vector<NodeId> nodes;
    Instant turn_began;
  };

  Standing standing_of(const Member& member) const;
  bool may_work(const Member& member) const { return member.present() && !member.resting; }
  // How many nodes of the machine work, or are present.
  std::size_t count(const Machine& machine, bool (Member::*is)() const) const;
  std::size_t workers() const;
  std::size_t places(const Machine& machine) const;
  bool turn_over(const Machine& machine, const std::vector<NodeId>& present, Instant now,
                 std::uint64_t leases_min) const;
  bool expensive_swap_ins() const;
  TeamSize::Pool pool(std::uint32_t step_slots) const;
  double whole_step_seconds(const Member& member, std::uint32_t step_slots) const;
  std::set<NodeId> best(std::size_t count, std::uint32_t step_slots) const;
  std::string machine_reason(NodeId node) const;

  Options options_;
  std::map<NodeId, Member> members_;
  std::map<std::string, Machine> machines_;  // whose nodes share cores
  TeamSize team_;
  bool team_rotates_ = false;  // it is made of those whose turn it is; else those who are in it stay
  std::optional<double> estimated_from_;  // seconds of an exchange when the team's size was estimated
};

}  // namespace w5xde
