#pragma once

#include <cstdint>
#include <string>

#include "coordinator/codec_choice.h"
#include "coordinator/evaluations.h"
#include "coordinator/lease_samples.h"
#include "coordinator/sessions.h"
#include "coordinator/tally.h"
#include "coordinator/training.h"

namespace w5xde {

// What is told about a run that has begun: the status while it trains, the summary at its end, what its
// checkpoints and its database say.
struct RunReport {
  const std::string& name;
  const RunConfig& config;
  const Loop& loop;
  const Sessions& sessions;
  const Tally& tally;
  const Training& training;
  const Round& round;
  const LeaseSamples& samples;
  const CodecChoice& codecs;
  const Evaluations& evaluations;

  Summary summary() const;
  CheckpointInfo checkpoint_info() const;
  Tally::Progress progress() const;
  void add_to(StatusReport& status) const;

  std::uint64_t steps_done() const;
  // Nodes that work in a step, or did when the run ended; 0: all.
  std::size_t working() const;
  NodeTraffic traffic_of(const Session& session) const;

 private:
  std::string describe_up(const Session& session) const;
  std::string describe_down(const Session& session) const;
  double epochs(std::uint64_t samples_committed) const;
  // Samples of a step that has not been cut short.
  std::uint64_t global_batch_of(std::uint64_t step) const;
};

}  // namespace w5xde
