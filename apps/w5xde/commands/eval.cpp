// w5xde eval: loss, accuracy and perplexity of a run's checkpoint, and the model's outputs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/file.h"
#include "commands/command.h"
#include "commands/trained_run.h"
#include "coordinator/batches.h"
#include "data/npy.h"
#include "local_pool/run_request.h"
#include "record/summary.h"
#include "settings.h"

namespace w5xde {

namespace {

constexpr std::uint32_t kBatch = 256;

struct EvalOptions {
  TrainedRunOptions trained;
  std::string data;
  std::string json;
  std::string outputs;
};

struct Scores {
  std::uint64_t step = 0;
  std::uint64_t samples = 0;
  EvaluationStats stats;
};

// What the run is evaluated on; `data` instead, if it is given.
Result<std::shared_ptr<const Dataset>> evaluation_set(RunConfig config, const std::string& data) {
  if (!data.empty()) {
    config.evaluation_data = data;
    config.split = 0;
  }
  W5XDE_TRY(const RunData samples, open_samples(config));
  if (samples.evaluation) return samples.evaluation;
  fmt::print(stderr, "w5xde: {} has no test split: these scores are of the samples that it trains on\n",
             config.data);
  return samples.train;
}

// The outputs of one batch after the other, as one array of NumPy.
class OutputFile {
 public:
  Status add(Outputs outputs) {
    if (!parts_.empty() && !std::ranges::equal(outputs.shape.dims().subspan(1), sample_dims()))
      return invalid("the model's outputs change their shape from {} to {}", parts_.front().shape.to_string(),
                     outputs.shape.to_string());
    samples_ += outputs.shape[0];
    parts_.push_back(std::move(outputs));
    return {};
  }

  Status write(const std::filesystem::path& path) const {
    std::vector<std::int64_t> dims{samples_};
    if (!parts_.empty()) dims.insert(dims.end(), sample_dims().begin(), sample_dims().end());
    W5XDE_TRY(const Shape shape, Shape::make(dims));
    const std::string header = npy_header_of(DType::f32, shape);
    std::vector<Bytes> bytes{bytes_of(header)};
    for (const Outputs& part : parts_) bytes.push_back(std::as_bytes(std::span(part.values)));
    W5XDE_CHECK(write_file_atomically(path, bytes));
    fmt::print("{}: outputs {}\n", path.string(), shape.to_string());
    return {};
  }

 private:
  std::span<const std::int64_t> sample_dims() const { return parts_.front().shape.dims().subspan(1); }

  std::vector<Outputs> parts_;
  std::int64_t samples_ = 0;
};

Result<Scores> evaluate(const TrainedRun& run, const std::shared_ptr<const Dataset>& data,
                        OutputFile* outputs) {
  Batches batches(data, {.samples = data->samples(), .batch = kBatch, .shuffle = false});
  Scores scores{.step = run.checkpoint.info().step};
  Evaluation total;
  for (std::uint64_t slot = 0; slot < batches.sampler().slots_per_epoch(); ++slot) {
    W5XDE_TRY(const Batch batch, batches.make(slot, 1));
    const SlotSamples samples = batch.samples();
    W5XDE_TRY(const Evaluation part, run.engine->evaluate(run.state(), samples));
    total.loss_sum += part.loss_sum;
    total.counted += part.counted;
    total.correct += part.correct;
    total.samples += part.samples;
    if (outputs == nullptr) continue;
    W5XDE_TRY(Outputs given, run.engine->predict(run.state(), samples.inputs));
    W5XDE_CHECK(outputs->add(std::move(given)));
  }
  scores.samples = total.samples;
  scores.stats.loss = total.loss_sum / static_cast<double>(total.samples);
  if (run.engine->description().loss != "cross-entropy") return scores;
  scores.stats.accuracy = static_cast<double>(total.correct) / static_cast<double>(total.counted);
  if (is_sequence(data->targets())) scores.stats.perplexity = std::exp(scores.stats.loss);
  return scores;
}

Status eval(const EvalOptions& options) {
  W5XDE_CHECK(check_folder_of(options.outputs));
  W5XDE_CHECK(check_folder_of(options.json));
  W5XDE_TRY(const TrainedRun run, load_trained_run(options.trained));
  W5XDE_TRY(const auto data, evaluation_set(run.config, options.data));
  W5XDE_CHECK(check_alike(*run.data, *data));
  OutputFile outputs;
  W5XDE_TRY(const Scores scores, evaluate(run, data, options.outputs.empty() ? nullptr : &outputs));
  const EvaluationStats& stats = scores.stats;
  const auto shown = [](const char* name, double value, int digits) {
    return std::isnan(value) ? "" : fmt::format("  {} {:.{}f}", name, value, digits);
  };
  fmt::print("step {}  samples {}  loss {:.4f}{}{}\n", scores.step, scores.samples, stats.loss,
             shown("accuracy", stats.accuracy, 4), shown("perplexity", stats.perplexity, 3));
  if (!options.outputs.empty()) W5XDE_CHECK(outputs.write(options.outputs));
  const auto number = [](double value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; };
  return write_text(
      options.json,
      fmt::format("{{\"step\": {}, \"samples\": {}, \"loss\": {}, \"accuracy\": {}, \"perplexity\": {}}}\n",
                  scores.step, scores.samples, number(stats.loss), number(stats.accuracy),
                  number(stats.perplexity)));
}

}  // namespace

void add_eval(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("eval", "Loss and accuracy of a run's checkpoint.");
  const auto options = std::make_shared<EvalOptions>();
  add_trained_run_options(*command, options->trained);
  command->add_option("--data", options->data, "What to evaluate on; by default what the run does");
  command->add_option("--outputs", options->outputs, "Write the model's outputs to FILE.npy, one a sample")
      ->group(kRecordingGroup);
  command->add_option("--json", options->json, "Write the scores to this file too")->group(kRecordingGroup);
  command->footer(
      "Example:\n"
      "  w5xde eval runs/a --data idx:fashion-mnist\n"
      "  w5xde eval runs/a --outputs outputs.npy");
  command->callback([options, &code] { code = exit_code(eval(*options)); });
}

}  // namespace w5xde
