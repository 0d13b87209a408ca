// What a run is asked to be, before anything of it is started: its settings, its folder, its data.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/log.h"
#include "data/dataset.h"
#include "record/checkpoint.h"
#include "run/run_config.h"
#include "settings.h"
#include "w5xde/result.h"

namespace w5xde {

struct RunRequest {
  RunConfig config;
  std::string folder;
  bool resumed = false;

  // `run` is a run folder, a .toml file, or empty: a new folder under runs/. What the command line gave
  // changes what run.toml says, as far as a run that has begun may change.
  static Result<RunRequest> read(const std::string& run, const Given& given);
};

struct RunData {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> evaluation;  // none: nothing to evaluate on
};

// Opens what the run trains and evaluates on. Where that takes long, it shows how far it is, in the log if
// there is one.
Result<RunData> open_samples(const RunConfig& config, const Log* log = nullptr);
// The same, and checks the settings that depend on it.
Result<RunData> open_data(const RunConfig& config, const Log* log = nullptr);

// What --loss auto became when the run began. Older checkpoints do not say.
std::string loss_of(const RunConfig& config, const CheckpointInfo& begun, const RunData& data);
// Whether the targets that may end a run can be reached with this loss.
Status check_targets(const RunConfig& config, const std::string& loss);

}  // namespace w5xde
