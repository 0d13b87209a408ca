// w5xde sample: text from a model that was trained on text.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/random.h"
#include "commands/command.h"
#include "commands/trained_run.h"

namespace w5xde {

namespace {

struct SampleOptions {
  TrainedRunOptions trained;
  std::string prompt = "\n";
  std::uint64_t length = 400;
  double temperature = 0.8;
  std::uint64_t seed = 1;
};

Status check(const SampleOptions& options, const TrainedRun& run) {
  if (!run.config.data.starts_with("text:")) {
    return invalid(
        "{} was trained on {}, and text comes from runs that were trained on text: w5xde train RUN "
        "--data text:FILE --model gpt:4,4,128,128",
        options.trained.run, run.config.data);
  }
  if (options.prompt.empty()) return invalid("--prompt is empty; leave it out to begin with a new line");
  if (!(options.temperature >= 0)) return invalid("--temperature is a number from 0 on");
  return {};
}

// The next byte: drawn by exp(score / temperature), or the likeliest where the temperature is 0.
std::size_t choose(std::span<const float> scores, double temperature, Random& random) {
  const auto best = std::ranges::max_element(scores);
  if (temperature == 0) return static_cast<std::size_t>(best - scores.begin());
  std::vector<double> weights;
  double total = 0;
  for (const float score : scores)
    total += weights.emplace_back(std::exp((double{score} - double{*best}) / temperature));
  double rest = random.unit() * total;
  for (std::size_t i = 0; i + 1 < weights.size(); ++i) {
    rest -= weights[i];
    if (rest < 0) return i;
  }
  return weights.size() - 1;
}

// The model's scores for what follows `window`, which is no longer than a sample.
Result<std::vector<float>> scores_after(const TrainedRun& run, std::string_view window) {
  const std::size_t tokens = run.data->inputs()[0].shape.elements();
  // A model of text looks back only: what stands behind the window has no influence.
  std::vector<std::byte> bytes(tokens);
  std::ranges::copy(bytes_of(window), bytes.begin());
  const Shape one{1, static_cast<std::int64_t>(tokens)};
  W5XDE_TRY(const Outputs outputs, run.engine->predict(run.state(), {{bytes, DType::u8, one}}));
  const std::size_t bytes_known = run.data->classes();
  const auto given = outputs.shape.dims();
  // A model may know more than bytes.
  if (given.size() != 3 || given[1] != one[1] || static_cast<std::size_t>(given[2]) < bytes_known) {
    return invalid("{} gives {} for {} bytes, which is no score for each byte that may follow each",
                   run.config.model, outputs.shape.to_string(), tokens);
  }
  const auto row =
      std::span(outputs.values).subspan((window.size() - 1) * static_cast<std::size_t>(given[2]));
  return std::vector<float>(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(bytes_known));
}

Status write_out(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) == bytes.size() && std::fflush(stdout) == 0)
    return {};
  return Error{ErrorKind::system, "the text cannot be written: its reader is gone, or the disk is full"};
}

Status sample(const SampleOptions& options) {
  W5XDE_TRY(const TrainedRun run, load_trained_run(options.trained));
  W5XDE_CHECK(check(options, run));
  const std::size_t tokens = run.data->inputs()[0].shape.elements();
  Random random(options.seed);
  std::string text = options.prompt;
  W5XDE_CHECK(write_out(text));
  for (std::uint64_t i = 0; i < options.length; ++i) {
    const std::string_view all = text;
    const auto scores = scores_after(run, all.substr(all.size() - std::min(all.size(), tokens)));
    if (!scores.ok()) return scores.error();
    text += static_cast<char>(choose(*scores, options.temperature, random));
    W5XDE_CHECK(write_out(std::string_view(text).substr(text.size() - 1)));
  }
  // On a terminal the next prompt begins on a line of its own; elsewhere the bytes are what they are.
  return isatty(STDOUT_FILENO) != 0 ? write_out("\n") : Status();
}

}  // namespace

void add_sample(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("sample", "Text from a model that was trained on text.");
  const auto options = std::make_shared<SampleOptions>();
  add_trained_run_options(*command, options->trained);
  command->add_option("--prompt", options->prompt, "What the text begins with; by default a new line")
      ->default_str("");
  command->add_option("--length", options->length, "How many bytes to write after it");
  command->add_option("--temperature", options->temperature,
                      "0: always the likeliest byte; 1: as likely as the model says; more: wilder");
  command->add_option("--seed", options->seed, "Of what is drawn: the same seed writes the same text");
  command->footer("Example:\n  w5xde sample runs/whale --prompt \"Call me\" --length 400");
  command->callback([options, &code] { code = exit_code(sample(*options)); });
}

}  // namespace w5xde
