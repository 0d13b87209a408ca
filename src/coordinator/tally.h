#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "coordinator/recorder.h"
#include "coordinator/step_rows.h"
#include "data/sampler.h"
#include "lease/roster.h"
#include "record/committed_slots.h"
#include "record/summary.h"
#include "wire/enrolment.h"
#include "wire/status.h"

namespace w5xde {

// What travelled between the coordinator and a node so far, as the node sees it, and in which codecs.
struct NodeTraffic {
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  double compression_ratio = kUnknown;
  std::string codec_up;
  std::string codec_down;
};

// Counts what a run has done: what its checkpoints, its summary, its status, its audit and its database say.
// Told of every node that joins and leaves, of every contribution and of every commit. Loop thread only.
class Tally {
 public:
  Tally(const Loop& loop, Recorder& recorder, const Log& log) : loop_(loop), recorder_(recorder), log_(log) {}

  // Goes on from a checkpoint; `steps` as rows of the database count them.
  void resume(const CheckpointInfo& from, std::uint64_t steps);
  // The clock of training runs between these two.
  void begin() {
    begun_ = progress_due_ = loop_.now();
    rows_.begin(begun_);
  }
  // `working` nodes worked in a step by then; 0: all.
  void end(std::size_t working) {
    ended_ = loop_.now();
    working_at_end_ = working;
  }
  Instant ended() const { return ended_; }
  const std::optional<std::size_t>& working_at_end() const { return working_at_end_; }
  // Of training, with those before this process.
  double seconds() const;

  // Logged, and in the database.
  void event(const std::string& text);

  void joined(NodeId id, const std::string& name, const std::string& peer, const Ready& about);
  // A contribution came in, whether it counts or not.
  void computed(NodeId id, const Contribution& contribution);
  // It counts.
  void counted(NodeId id, const Contribution& contribution);
  std::uint64_t batches_of(NodeId id) const { return stays_.at(id).summary.batches; }
  std::uint64_t lanes_of(NodeId id) const { return stays_.at(id).summary.lanes; }
  // Its standing when the run ended, or when it left.
  void stood(NodeId id, const Roster& roster);
  // In the database. A node that is sent home when the run ends has left before its connection is closed.
  void record_departure(NodeId id, const std::string& reason);
  void left(NodeId id, const NodeTraffic& traffic, const std::string& reason);
  // The node left without handing its error feedback over.
  void feedback_lost(const std::string& name);

  struct Commit {
    double loss = 0;  // mean over its samples
    std::uint64_t samples = 0;
    std::uint64_t first_slot = 0;  // counted from the run's first
    std::uint32_t slots = 0;
  };
  void committed(const Commit& commit);
  void set_step(std::uint64_t step) { counted_.step = step; }
  // A row of the database covers the steps since the last one.
  bool row_due() const { return rows_.due(); }
  struct Progress {
    std::uint64_t steps = 0;
    double learning_rate = 0;
    unsigned nodes = 0;
  };
  void record_steps(const Progress& progress);
  void evaluated(const EvaluationStats& evaluation, std::uint64_t samples, std::uint64_t steps);
  // True once a second.
  bool progress_due();

  std::uint64_t step() const { return counted_.step; }
  std::uint64_t samples_committed() const { return counted_.samples_committed; }
  std::uint64_t slots_committed() const { return counted_.slots_committed; }
  // As far as it is known here, for a checkpoint whose next step begins with this slot.
  CheckpointInfo info(std::uint64_t next_slot) const;
  // `cut_off`: some slots before the last that is committed are still out.
  AuditStats audit(const Sampler& sampler, bool cut_off) const;
  // Of nodes, losses, times and traffic; `traffic` is of the nodes that are here.
  Summary summary(std::uint64_t versions, const std::map<NodeId, NodeTraffic>& traffic) const;
  void report(StatusReport& report) const;

 private:
  // A node that is here.
  struct Stay {
    NodeSummary summary;
    RunDatabase::NodeRow row;
  };

  void keep(NodeSummary stay);

  const Loop& loop_;
  Recorder& recorder_;
  Log log_;
  CheckpointInfo counted_;
  CommittedSlots committed_slots_;
  std::uint64_t batches_here_ = 0;  // committed by this process
  double seconds_before_ = 0;       // of training, in those before it
  std::optional<std::uint64_t> resumed_at_;
  Instant begun_;  // of training, in this process
  Instant ended_;
  std::optional<std::size_t> working_at_end_;

  std::map<NodeId, Stay> stays_;
  std::vector<NodeSummary> left_;  // nodes that are gone, one entry for each name
  std::deque<StatusReport::Departure> departures_;
  std::string engine_, processor_;  // of the first node

  StepRows rows_;
  Instant progress_due_;
};

}  // namespace w5xde
