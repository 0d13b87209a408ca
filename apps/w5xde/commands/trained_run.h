// A run folder's model with the weights of one of its checkpoints, for the commands that use it.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "data/dataset.h"
#include "record/run_folder.h"
#include "run/run_config.h"
#include "w5xde/engine.h"
#include "w5xde/result.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace w5xde {

// What --help of these commands has in common.
struct TrainedRunOptions {
  std::string run;
  std::string checkpoint;  // a file; empty: the newest, or the best
  bool best = false;
  std::string engine;
  std::string device = "auto";
};
void add_trained_run_options(CLI::App& command, TrainedRunOptions& options);
void add_best_flag(CLI::App& command, TrainedRunOptions& options);

struct TrainedRun {
  RunFolder folder;
  RunConfig config;
  CheckpointFile checkpoint;
  std::shared_ptr<const Dataset> data;  // what it was trained on
  std::unique_ptr<Engine> engine;       // the model made as it was trained
  AlignedBuffer memory;                 // the checkpoint's state

  std::span<const float> state() const {
    return {reinterpret_cast<const float*>(memory.data()), engine->description().floats()};
  }
};

// The settings that RUN was given, as run.toml has them.
Result<RunConfig> config_of(const RunFolder& folder);
// The checkpoint that the options ask for: a named file, the best, or the newest whole one. Those that had to
// be skipped are told on stderr.
Result<CheckpointFile> checkpoint_of(const RunFolder& folder, const TrainedRunOptions& options);
Result<TrainedRun> load_trained_run(const TrainedRunOptions& options);

}  // namespace w5xde
