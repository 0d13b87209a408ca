#include "commands/trained_run.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "commands/command.h"
#include "commands/newest_checkpoint.h"
#include "learn/engine_library.h"
#include "local_pool/run_model.h"
#include "local_pool/run_request.h"
#include "settings.h"

namespace w5xde {

namespace {

Result<AlignedBuffer> state_of(const CheckpointFile& checkpoint, const ModelDescription& model) {
  AlignedBuffer memory(model.floats() * sizeof(float));
  const std::span<float> state(reinterpret_cast<float*>(memory.data()), model.floats());
  std::ranges::fill(state, 0.F);
  W5XDE_CHECK(checkpoint.read("parameters", *model.parameters, state.first(model.parameters->floats())));
  if (model.buffers->floats() > 0)
    W5XDE_CHECK(checkpoint.read("buffers", *model.buffers, state.subspan(model.parameters->floats())));
  return memory;
}

}  // namespace

void add_best_flag(CLI::App& command, TrainedRunOptions& options) {
  command.add_flag("--best", options.best, "The checkpoint with the lowest evaluation loss; else the newest");
}

void add_trained_run_options(CLI::App& command, TrainedRunOptions& options) {
  command.add_option("RUN", options.run, "The run folder")->required();
  command.add_option("--checkpoint", options.checkpoint, "A file; by default the newest");
  add_best_flag(command, options);
  add_device_flag(command, options.device);
  command.add_option("--engine", options.engine, "The engine's shared library");
}

Result<RunConfig> config_of(const RunFolder& folder) {
  RunConfig config;
  auto settings = settings_of(config);
  W5XDE_TRY(const Given given, read_run_toml(folder.run_toml()));
  W5XDE_CHECK(apply_settings(settings, given));
  return config;
}

Result<CheckpointFile> checkpoint_of(const RunFolder& folder, const TrainedRunOptions& options) {
  if (!options.checkpoint.empty()) return CheckpointFile::open(options.checkpoint);
  if (!options.best) return newest_checkpoint(folder);
  if (std::filesystem::exists(folder.best_checkpoint()))
    return CheckpointFile::open(folder.best_checkpoint());
  return invalid("{} has no best checkpoint: it was never evaluated; leave --best out for the newest",
                 folder.path().string());
}

Result<TrainedRun> load_trained_run(const TrainedRunOptions& options) {
  W5XDE_TRY(RunFolder folder, RunFolder::look(options.run));
  W5XDE_TRY(RunConfig config, config_of(folder));
  W5XDE_TRY(CheckpointFile checkpoint, checkpoint_of(folder, options));
  // The model is made as it was trained, whatever it is used on.
  W5XDE_TRY(RunData data, open_samples(config));
  W5XDE_TRY(const auto path, find_engine(options.engine));
  W5XDE_TRY(const EngineLibrary library, EngineLibrary::load(path, config.threads));
  W5XDE_TRY(auto engine,
            library.make(model_options(config, *data.train, options.device), folder.engine_file()));
  W5XDE_TRY(AlignedBuffer memory, state_of(checkpoint, engine->description()));
  return TrainedRun{std::move(folder),     std::move(config), std::move(checkpoint),
                    std::move(data.train), std::move(engine), std::move(memory)};
}

}  // namespace w5xde
