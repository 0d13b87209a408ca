#include "local_pool/run_request.h"

#include <fmt/format.h>

#include <ctime>
#include <vector>

#include "base/errors.h"
#include "base/work_progress.h"
#include "data/held_out.h"
#include "learn/sample_preparation.h"
#include "local_pool/part_training.h"
#include "local_pool/run_model.h"
#include "record/run_folder.h"

namespace w5xde {

namespace {

std::string new_run_folder() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  for (int i = 0;; ++i) {
    std::string folder = fmt::format("runs/{}{}", text, i == 0 ? "" : fmt::format("-{}", i));
    if (!std::filesystem::exists(folder)) return folder;
  }
}

Status refuse_changes(const Given& before, const Given& now, std::vector<Setting>& settings) {
  for (const auto& setting : settings) {
    const auto given = now.find(setting.name);
    const auto begun = before.find(setting.name);
    if (!setting.fixed || given == now.end() || begun == before.end()) continue;
    W5XDE_CHECK(setting.set(begun->second));
    const std::string old = setting.get();
    W5XDE_CHECK(setting.set(given->second));
    if (setting.get() != old) {
      return invalid(
          "this run was begun with {} = {}, which cannot change; leave --{} out, or begin a new "
          "run in another folder",
          setting.name, old, setting.name);
    }
  }
  return {};
}

// The same command line begins a run and resumes it: what was measured is in its run.toml.
Given without_measuring(Given given, const Given& before) {
  const auto is = [](const Given& all, const std::string& value) {
    const auto found = all.find("normalize");
    return found != all.end() && found->second == value;
  };
  if (is(given, "auto") && before.contains("normalize") && !is(before, "none")) given.erase("normalize");
  const auto batch = given.find("batch");
  if (batch == given.end() || batch->second != "auto") return given;
  given.erase(batch);
  given.erase("slots");
  return given;
}

// Without a checkpoint, an earlier start was refused and fixed no settings.
bool is_begun(const std::filesystem::path& folder) {
  const auto run = RunFolder::look(folder);
  return run.ok() && !run->checkpoints().empty();
}

Status check_model_file(const std::string& model) {
  std::error_code error;
  if (!is_script(model) || std::filesystem::exists(model, error)) return {};
  return invalid(
      "there is no file {}; --model takes a TorchScript file, as "
      "torch.jit.script(model).save(\"{}\") makes it",
      model, model);
}

Status check_init(const std::string& init) {
  std::error_code error;
  if (init.empty() || std::filesystem::exists(init, error)) return {};
  return invalid(
      "--init: there is no file and no run {}; it takes weights as `w5xde export` writes them, or a run's "
      "folder",
      init);
}

}  // namespace

Result<RunRequest> RunRequest::read(const std::string& run, const Given& given) {
  RunRequest asked;
  auto settings = settings_of(asked.config);
  const bool from_toml = run.ends_with(".toml");
  if (from_toml && !std::filesystem::exists(run)) {
    return invalid("there is no file {}; write one, or say what to train with --model and --data", run);
  }
  asked.folder = run.empty() || from_toml ? new_run_folder() : run;
  const bool resumed = asked.resumed = is_begun(asked.folder);
  const std::filesystem::path toml = from_toml ? run : asked.folder + "/run.toml";
  Given now = given;
  if (std::filesystem::exists(toml)) {
    W5XDE_TRY(const Given before, read_run_toml(toml));
    if (resumed) {
      now = without_measuring(given, before);
      W5XDE_CHECK(refuse_changes(before, now, settings));
    }
    W5XDE_CHECK(apply_settings(settings, before));
  }
  W5XDE_CHECK(apply_settings(settings, now));
  W5XDE_CHECK(asked.config.check());
  if (resumed) return asked;
  W5XDE_CHECK(check_model_file(asked.config.model));
  W5XDE_CHECK(check_init(asked.config.init));
  W5XDE_CHECK(check_pattern(asked.config.train));
  return asked;
}

Result<RunData> open_samples(const RunConfig& config, const Log* log) {
  RunData data;
  const SteadyClock clock;
  const auto open = [&](const std::string& spec, Split split) {
    WorkProgress progress(log, clock, "reading " + spec);
    return open_dataset(spec, split, config.seed, config.ignore_index, progress.teller());
  };
  W5XDE_TRY(data.train, open(config.data, Split::train));
  const std::string& other = config.evaluation_data;
  // Who names the training data to evaluate on means its test split.
  const bool own = other.empty() || other == config.data;
  W5XDE_TRY(data.evaluation, own ? open(config.data, Split::test) : open(other, Split::evaluation));
  if (!other.empty() && !data.evaluation) data.evaluation = data.train;
  if (config.split == 0) return data;
  if (data.evaluation) {
    return invalid(
        "--split is for data without a test split, and {} has one, of {} samples, which the run is "
        "evaluated on; leave --split out",
        config.data, data.evaluation->samples());
  }
  W5XDE_TRY(Parts parts, hold_out(data.train, config.split, config.seed));
  return RunData{std::move(parts.train), std::move(parts.evaluation)};
}

Result<RunData> open_data(const RunConfig& config, const Log* log) {
  W5XDE_TRY(RunData data, open_samples(config, log));
  if (config.batch > data.train->samples() && !config.batch_measured) {
    return invalid("--batch {} is more than the data has: {} samples; take {} at most", config.batch,
                   data.train->samples(), data.train->samples());
  }
  if (data.evaluation) W5XDE_CHECK(check_alike(*data.train, *data.evaluation));
  if (config.preparation.any() || config.normalize_measured) {
    auto prepared = prepared_input(config.preparation, data.train->inputs(), data.train->targets());
    if (!prepared.ok()) return invalid("--{}", prepared.error().message);
  }
  const bool classifies = data.evaluation && data.evaluation->classes() > 0;
  if (config.target_accuracy > 0 && !classifies) {
    return invalid("--target-accuracy needs classes to evaluate on, and {}; leave it out{}",
                   data.evaluation ? "the targets are not classes" : "there is no evaluation data",
                   data.evaluation ? ", or say --target-loss" : ", or give --evaluation-data or --split");
  }
  if (config.evaluate_every > 0 && !data.evaluation) {
    return invalid(
        "--evaluate-every needs data to evaluate on; leave it out, or give --evaluation-data or --split");
  }
  return data;
}

std::string loss_of(const RunConfig& config, const CheckpointInfo& begun, const RunData& data) {
  if (config.loss != Loss::automatic) return std::string(name_of(config.loss));
  if (!begun.loss.empty()) return begun.loss;
  return std::string(name_of(data.train->classes() > 0 ? Loss::cross_entropy : Loss::mse));
}

Status check_targets(const RunConfig& config, const std::string& loss) {
  if (config.target_accuracy == 0 || loss != name_of(Loss::own)) return {};
  return invalid(
      "--target-accuracy needs outputs to compare with classes, and a model that computes its own loss gives "
      "none; say --target-loss");
}

}  // namespace w5xde
