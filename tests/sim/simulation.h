// A whole pool under faults, decided by one seed: the real coordinator, sessions and nodes with the fake
// engine, on simulated time, links and disk, in one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "coordinator/coordinator.h"
#include "node/node.h"
#include "sim/scenario.h"
#include "sim/world/disk.h"
#include "sim/world/network.h"
#include "sim/world/process.h"

namespace w5xde {

class Simulation {
 public:
  // `trace` gets a line for everything that happens; it may be empty.
  Simulation(std::uint64_t seed, SimTrace trace);
  ~Simulation();

  // To the end of the run. What was violated; empty: nothing.
  std::string run();
  std::uint64_t events() const { return time_.events_run(); }
  const Scenario& scenario() const { return scenario_; }

 private:
  struct Member;
  class SimListener;

  void trace(const std::string& line);
  void violated(std::string what);
  double unit() { return random_.unit(); }
  Duration seconds_up_to(double most) { return duration_of(most * random_.unit()); }

  // The coordinator's process.
  void start_coordinator();
  void lose_coordinator();
  void start_coordinator_later();
  void look_at_outcome();
  void finish();
  void check_result();
  void check_feedback(const CheckpointFile& checkpoint);
  Listen listening();

  // The nodes'.
  void add_member(NodePlan plan);
  void connect(Member& member);
  void connect_later(Member& member);
  void lose_node(Member& member);
  void tend();
  // Those who answer with NaN. False: there are none.
  bool send_liars_away();

  // What goes wrong.
  void next_fault();
  void happen(Fault fault);
  void happen_to_coordinator(Fault fault);
  void happen_to_disk(Fault fault);
  void happen_to_link(Fault fault, SimLink& link);
  Member* any_member();

  std::shared_ptr<const Dataset> data(Split split) const;

  const std::uint64_t seed_;
  Scenario scenario_;
  Random random_;
  SimTrace trace_;
  Log log_{LogTier::silent};
  SimTime time_;
  SimDisk disk_;
  std::unique_ptr<SimProcess> process_;  // the coordinator's
  std::unique_ptr<Coordinator> coordinator_;
  Listener::Accepted accept_;  // empty: nobody listens
  std::vector<std::unique_ptr<Member>> members_;
  unsigned faults_left_ = 0;
  unsigned writes_until_crash_ = 0;  // 0: it does not crash
  bool power_lost_ = false;          // when it next crashes
  Instant disk_slow_until_{}, last_fault_{};
  std::optional<std::string> hash_;  // of the finished run
  bool feedback_lost_ = false;       // with a node, and counted
  std::string violation_;
  bool finished_ = false;
};

}  // namespace w5xde
