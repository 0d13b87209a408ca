// What a run is asked to be, before anything of it is started: its settings, its folder, its data.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

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

// Without a checkpoint, an earlier start was refused and fixed no settings.
bool is_begun(const std::filesystem::path& folder);

struct RunData {
  std::shared_ptr<const Dataset> train;
  std::shared_ptr<const Dataset> evaluation;  // none: nothing to evaluate on
};

// Opens the data and checks the settings that need it.
Result<RunData> open_data(const RunConfig& config);

// What --loss auto became when the run began. Older checkpoints do not say.
std::string loss_of(const RunConfig& config, const CheckpointInfo& begun, const RunData& data);

}  // namespace w5xde
