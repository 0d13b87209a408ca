// The engine alone, in one process or several: no network, no coordinator.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "data/dataset.h"
#include "learn/engine_library.h"
#include "run/run_config.h"
#include "w5xde/result.h"

namespace w5xde {

// A run's model, data and engine, ready to compute.
struct Workbench {
  RunConfig config;
  std::shared_ptr<const Dataset> data;
  EngineLibrary library;
  ModelOptions model;

  // `engine` is empty for the one beside this program.
  static Result<Workbench> open(const RunConfig& config, const std::string& engine);
  Result<std::unique_ptr<Engine>> make_engine() const;
};

struct LaneOptions {
  unsigned lanes = 1;
  double seconds = 1;
  unsigned slots_added_up = 1;  // each time anew: nodes add up several
};
struct LaneFigures {
  double slots_per_second = 0;     // of all lanes
  std::uint64_t memory_bytes = 0;  // the largest lane's peak
};
// Lanes are processes, as nodes are. Call before this process starts a thread.
Result<LaneFigures> compute_in_lanes(const Workbench& bench, const LaneOptions& options);

// The peak of this process.
std::uint64_t peak_memory_bytes();

}  // namespace w5xde
