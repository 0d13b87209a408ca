// w5xde eval: loss and accuracy of a run's checkpoint.
#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "base/file.h"
#include "commands/command.h"
#include "commands/newest_checkpoint.h"
#include "coordinator/batches.h"
#include "learn/engine_library.h"
#include "local_pool/engine_host.h"
#include "local_pool/run_request.h"
#include "record/run_folder.h"
#include "settings.h"

namespace w5xde {

namespace {

constexpr std::uint32_t kBatch = 256;

struct EvalOptions {
  std::string run;
  std::string data;
  std::string checkpoint;  // empty: the newest
  std::string engine;
  std::string device = "auto";
  std::string json;
};

struct Scores {
  std::uint64_t step = 0;
  double loss = 0;
  double accuracy = 0;
  std::uint64_t samples = 0;
  bool classes = false;  // whether there is an accuracy
};

Result<CheckpointFile> checkpoint_of(const EvalOptions& options, const RunFolder& folder) {
  return options.checkpoint.empty() ? newest_checkpoint(folder) : CheckpointFile::open(options.checkpoint);
}

Result<Scores> evaluate(Engine& engine, const CheckpointFile& checkpoint,
                        const std::shared_ptr<const Dataset>& data) {
  const ModelDescription& model = engine.description();
  AlignedBuffer memory(model.floats() * sizeof(float));
  const std::span<float> state(reinterpret_cast<float*>(memory.data()), model.floats());
  std::ranges::fill(state, 0.f);
  W5XDE_CHECK(checkpoint.read("parameters", *model.parameters, state.first(model.parameters->floats())));
  if (model.buffers->floats() > 0) {
    W5XDE_CHECK(checkpoint.read("buffers", *model.buffers, state.subspan(model.parameters->floats())));
  }
  Batches batches(data, {.samples = data->samples(), .batch = kBatch, .shuffle = false});
  Scores scores{.step = checkpoint.info().step, .classes = model.loss == "cross-entropy"};
  double correct = 0;
  for (std::uint64_t slot = 0; slot < batches.sampler().slots_per_epoch(); ++slot) {
    const auto batch = batches.make(slot, 1);
    W5XDE_TRY(const Evaluation part, engine.evaluate(state, batch.samples()));
    scores.loss += part.loss_sum;
    correct += static_cast<double>(part.correct);
    scores.samples += part.samples;
  }
  scores.loss /= static_cast<double>(scores.samples);
  scores.accuracy = correct / static_cast<double>(scores.samples);
  return scores;
}

Result<Scores> scores_of(const EvalOptions& options) {
  W5XDE_TRY(const RunFolder folder, RunFolder::look(options.run));
  RunConfig config;
  auto settings = settings_of(config);
  W5XDE_TRY(const Given given, read_run_toml(folder.run_toml()));
  W5XDE_CHECK(apply(settings, given));
  W5XDE_TRY(const CheckpointFile checkpoint, checkpoint_of(options, folder));
  if (!options.data.empty()) {
    config.evaluation_data = options.data;
    config.split = 0;
  }
  W5XDE_TRY(const RunData data, open_samples(config));
  if (!data.evaluation) {
    fmt::print(stderr, "w5xde: {} has no test split: these scores are of the samples that it trains on\n",
               config.data);
  }
  W5XDE_TRY(const auto path, find_engine(options.engine));
  W5XDE_TRY(const EngineLibrary library, EngineLibrary::load(path, config.threads));
  const std::filesystem::path file = std::filesystem::exists(folder.model_file()) ? folder.model_file() : "";
  // The model is made as it was trained, whatever it is evaluated on.
  W5XDE_TRY(const auto engine, library.make(model_options(config, *data.train, options.device), file));
  return evaluate(*engine, checkpoint, data.evaluation ? data.evaluation : data.train);
}

Status eval(const EvalOptions& options) {
  W5XDE_TRY(const Scores scores, scores_of(options));
  const std::string accuracy = scores.classes ? fmt::format("{:.4f}", scores.accuracy) : "null";
  fmt::print("step {}  samples {}  loss {:.4f}{}\n", scores.step, scores.samples, scores.loss,
             scores.classes ? "  accuracy " + accuracy : "");
  return write_text(options.json,
                    fmt::format("{{\"step\": {}, \"samples\": {}, \"loss\": {}, \"accuracy\": {}}}\n",
                                scores.step, scores.samples, scores.loss, accuracy));
}

}  // namespace

void add_eval(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("eval", "Loss and accuracy of a run's checkpoint.");
  const auto options = std::make_shared<EvalOptions>();
  command->add_option("RUN", options->run, "The run folder")->required();
  command->add_option("--data", options->data, "What to evaluate on; by default what the run does");
  command->add_option("--checkpoint", options->checkpoint, "A file; by default the newest");
  command->add_option("--device", options->device, "auto, cpu, cuda or mps");
  command->add_option("--engine", options->engine, "The engine's shared library");
  command->add_option("--json", options->json, "Write the scores to this file too")->group(kRecordingGroup);
  command->footer("Example:\n  w5xde eval runs/a --data idx:fashion-mnist");
  command->callback([options, &code] { code = exit_code(eval(*options)); });
}

}  // namespace w5xde
