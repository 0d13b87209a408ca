#include "local_pool/run_request.h"

#include <fmt/format.h>

#include <ctime>
#include <vector>

#include "base/errors.h"
#include "local_pool/engine_host.h"
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

// The same command line begins a run and resumes it: the batch that was measured is in its run.toml.
Given without_measuring(Given given) {
  const auto batch = given.find("batch");
  if (batch == given.end() || batch->second != "auto") return given;
  given.erase(batch);
  given.erase("slots");
  return given;
}

Status check_model_file(const std::string& model) {
  if (!is_script(model) || std::filesystem::exists(model)) return {};
  return invalid(
      "there is no file {}; --model takes a TorchScript file, as "
      "torch.jit.script(model).save(\"{}\") makes it",
      model, model);
}

}  // namespace

bool is_begun(const std::filesystem::path& folder) {
  const auto run = RunFolder::look(folder);
  return run.ok() && !run->checkpoints().empty();
}

Result<RunRequest> RunRequest::read(const std::string& run, const Given& given) {
  RunRequest asked;
  auto settings = settings_of(asked.config);
  const bool from_toml = run.ends_with(".toml");
  if (from_toml && !std::filesystem::exists(run)) {
    return invalid("there is no file {}; write one, or say what to train with --model and --data", run);
  }
  asked.folder = run.empty() || from_toml ? new_run_folder() : run;
  const bool resumed = asked.resumed = is_begun(asked.folder);
  const Given now = resumed ? without_measuring(given) : given;
  const std::filesystem::path toml = from_toml ? run : asked.folder + "/run.toml";
  if (std::filesystem::exists(toml)) {
    W5XDE_TRY(const Given before, read_run_toml(toml));
    if (resumed) W5XDE_CHECK(refuse_changes(before, now, settings));
    W5XDE_CHECK(apply(settings, before));
  }
  W5XDE_CHECK(apply(settings, now));
  W5XDE_CHECK(asked.config.check());
  if (!resumed) W5XDE_CHECK(check_model_file(asked.config.model));
  return asked;
}

Result<RunData> open_data(const RunConfig& config) {
  RunData data;
  const auto open = [&](const std::string& spec, Split split) {
    return open_dataset(spec, split, config.seed, config.ignore_index);
  };
  W5XDE_TRY(data.train, open(config.data, Split::train));
  const std::string& other = config.evaluation_data;
  W5XDE_TRY(data.evaluation, open(other.empty() ? config.data : other, Split::test));
  if (!other.empty() && !data.evaluation) {
    W5XDE_TRY(data.evaluation, open(other, Split::train));
  }
  if (config.batch > data.train->samples() && !config.batch_measured) {
    return invalid("--batch {} is more than the data has: {} samples; take {} at most", config.batch,
                   data.train->samples(), data.train->samples());
  }
  if (data.evaluation) W5XDE_CHECK(check_alike(*data.train, *data.evaluation));
  const bool classifies = data.evaluation && data.evaluation->classes() > 0;
  if (config.target_accuracy > 0 && !classifies) {
    return invalid(
        "--target-accuracy needs classes to evaluate on, and {}; leave it out, or give "
        "--evaluation-data",
        data.evaluation ? "the targets are not classes" : "there is no evaluation data");
  }
  if (config.evaluate_every > 0 && !data.evaluation)
    return invalid("--evaluate-every needs data to evaluate on; leave it out, or give --evaluation-data");
  return data;
}

std::string loss_of(const RunConfig& config, const CheckpointInfo& begun, const RunData& data) {
  if (config.loss != Loss::automatic) return std::string(name_of(config.loss));
  if (!begun.loss.empty()) return begun.loss;
  return std::string(name_of(data.train->classes() > 0 ? Loss::cross_entropy : Loss::mse));
}

}  // namespace w5xde
