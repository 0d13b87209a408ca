// w5xde eval: loss and accuracy of a run's checkpoint.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "commands/commands.h"
#include "coordinator/batches.h"
#include "learn/engine.h"
#include "local_pool/engine_host.h"
#include "record/run_folder.h"

namespace w5xde {

namespace {

constexpr std::uint32_t kBatch = 256;

struct Scores {
  std::uint64_t step = 0;
  double loss = 0;
  double accuracy = 0;
  std::uint64_t samples = 0;
  bool classes = false;  // whether there is an accuracy
};

Result<std::shared_ptr<const Dataset>> evaluation_set(const std::string& spec, std::uint64_t seed) {
  W5XDE_TRY(auto set, open_dataset(spec, Split::test, seed));
  if (set) return set;
  return open_dataset(spec, Split::train, seed);
}

Result<CheckpointFile> checkpoint_of(const EvalOptions& options, const RunFolder& folder) {
  if (!options.checkpoint.empty()) return CheckpointFile::open(options.checkpoint);
  W5XDE_TRY(auto newest, folder.newest());
  if (!newest) return invalid(fmt::format("{} has no checkpoint yet", options.run));
  return std::move(*newest);
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
    W5XDE_TRY(const Evaluation part, engine.evaluate(state, {batch.payload[0], batch.payload[1]}));
    scores.loss += part.loss_sum;
    correct += static_cast<double>(part.correct);
    scores.samples += part.samples;
  }
  scores.loss /= static_cast<double>(scores.samples);
  scores.accuracy = correct / static_cast<double>(scores.samples);
  return scores;
}

Result<Scores> run(const EvalOptions& options) {
  W5XDE_TRY(const RunFolder folder, RunFolder::look(options.run));
  RunConfig config;
  auto settings = settings_of(config);
  W5XDE_TRY(const Given given, read_run_toml(folder.run_toml()));
  W5XDE_CHECK(apply(settings, given));
  W5XDE_TRY(const CheckpointFile checkpoint, checkpoint_of(options, folder));
  const std::string spec = !options.data.empty()             ? options.data
                           : !config.evaluation_data.empty() ? config.evaluation_data
                                                             : config.data;
  W5XDE_TRY(const auto data, evaluation_set(spec, config.seed));
  // The model is made as it was trained, whatever it is evaluated on.
  W5XDE_TRY(const auto trained_on, open_dataset(config.data, Split::train, config.seed));
  W5XDE_TRY(const auto path, find_engine(options.engine));
  W5XDE_TRY(const EngineLibrary library, EngineLibrary::load(path, config.threads));
  const bool scripted = config.model.ends_with(".pt");
  W5XDE_TRY(const auto engine, library.make({.model = config.model,
                                             .loss = std::string(name_of(config.loss)),
                                             .sample_shape = trained_on->inputs().shape,
                                             .classes = trained_on->classes(),
                                             .threads = config.threads,
                                             .device = options.device},
                                            scripted ? folder.model_file() : std::filesystem::path()));
  return evaluate(*engine, checkpoint, data);
}

}  // namespace

ExitCode eval(const EvalOptions& options) {
  const auto scores = run(options);
  if (!scores.ok()) return report(scores.error());
  const std::string accuracy = scores->classes ? fmt::format("{:.4f}", scores->accuracy) : "null";
  fmt::print("step {}  samples {}  loss {:.4f}{}\n", scores->step, scores->samples, scores->loss,
             scores->classes ? "  accuracy " + accuracy : "");
  if (options.json.empty()) return kSuccess;
  const std::string json = fmt::format("{{\"step\": {}, \"samples\": {}, \"loss\": {}, \"accuracy\": {}}}\n",
                                       scores->step, scores->samples, scores->loss, accuracy);
  const Status written = write_text(options.json, json);
  return written.ok() ? kSuccess : report(written.error());
}

}  // namespace w5xde
