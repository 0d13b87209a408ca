// What one seed stands for: a run, a pool, and what goes wrong.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "node/machine.h"
#include "run/run_config.h"
#include "sim/world/hostile.h"
#include "sim/world/network.h"

namespace w5xde {

struct NodePlan {
  std::string name;
  Machine machine;
  double slot_seconds = 0.001;
  SimLinkShape link;
  Hostility hostility = Hostility::none;
};

enum class Fault {
  kill_node,
  lose_node_power,
  leave_node,
  join_node,
  join_hostile,
  kill_coordinator,
  kill_coordinator_while_writing,
  lose_coordinator_power,
  stop_coordinator,
  block_link,
  cut_link,
  flip_bit,
  slow_link,
  freeze_node,
  freeze_coordinator,
  jump_node_clock,
  jump_coordinator_clock,
  fill_disk,
  fail_sync,
  slow_disk,
  count_,
};
std::string_view name_of(Fault fault);

struct Scenario {
  RunConfig config;
  bool evaluates = false;
  // Samples are windows of ids, as a language model has them; otherwise they are numbers.
  bool tokens = false;
  // A codec with error feedback: parameters and what is still to be said add up to all gradients.
  bool feeds_back = false;
  bool large = false;  // the coordinator does as with a model of a hundred million floats
  // Nodes share memory with the coordinator where their link is its machine's own.
  bool shares_memory = false;
  std::vector<NodePlan> nodes;
  double fault_seconds = 0;  // between two faults, on average
  unsigned faults = 0;       // all together
  std::vector<Fault> kinds;  // what may happen

  std::string describe() const;
};

Scenario make_scenario(std::uint64_t seed);
// One more node, honest unless the plan is changed.
NodePlan make_node(Random& random, std::size_t number);

}  // namespace w5xde
