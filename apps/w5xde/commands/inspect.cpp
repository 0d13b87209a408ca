// w5xde inspect: what a safetensors file, a checkpoint or a run holds.
#include <fmt/format.h>

#include <cmath>

#include "base/file.h"
#include "commands/command.h"
#include "commands/figure_text.h"
#include "record/checkpoint.h"
#include "record/run_database.h"
#include "record/run_folder.h"
#include "record/summary.h"
#include "tensor/safetensors.h"

namespace w5xde {

namespace {

constexpr std::size_t kStepsShown = 10;
constexpr std::size_t kEventsShown = 10;

Status inspect_file(const std::filesystem::path& path) {
  W5XDE_TRY(const SafetensorsFile file, SafetensorsFile::open(path));
  const SafetensorsContents& contents = file.contents();
  std::uint64_t elements = 0, bytes = 0;
  for (const auto& [name, tensor] : contents.tensors) {
    fmt::print("{:<40} {:<5} {:<20} {:>10}\n", name, name_of(tensor.dtype()), tensor.shape().to_string(),
               size_text(static_cast<double>(tensor.byte_count())));
    elements += tensor.shape().elements();
    bytes += tensor.byte_count();
  }
  for (const auto& [key, value] : contents.metadata) fmt::print("{} = {}\n", key, value);
  fmt::print("{} tensors, {} numbers, {}\n", contents.tensors.size(), elements,
             size_text(static_cast<double>(bytes)));
  return {};
}

void print_history(const RunDatabase& database) {
  if (const auto steps = database.steps(kStepsShown); !steps.empty()) {
    fmt::print("\n{:>10} {:>10} {:>12} {:>12} {:>6}\n", "step", "loss", "learn. rate", "batches/s", "nodes");
    for (const auto& row : steps) {
      fmt::print("{:>10} {:>10} {:>12.3g} {:>12.0f} {:>6}\n", row.step, decimal_text(row.loss, 4),
                 row.learning_rate, row.batches_per_second, row.nodes);
    }
  }
  for (const auto& row : database.evaluations()) {
    fmt::print("evaluation at step {}: loss {:.4f}{}\n", row.step, row.loss,
               std::isnan(row.accuracy) ? "" : fmt::format(", accuracy {:.4f}", row.accuracy));
  }
  const auto events = database.events(kEventsShown);
  if (!events.empty()) fmt::print("\nlast events:\n");
  for (const auto& event : events) fmt::print("{:>9.1f} s  {}\n", event.seconds, event.text);
}

Status inspect_run(const std::filesystem::path& path) {
  W5XDE_TRY(const RunFolder folder, RunFolder::look(path));
  if (const auto toml = MappedFile::open(folder.run_toml()); toml.ok())
    fmt::print("{}", text_of(toml->bytes()));
  fmt::print("\n");
  for (const auto& checkpoint : folder.checkpoints()) {
    const auto opened = CheckpointFile::open(checkpoint);
    if (!opened.ok()) {
      fmt::print("{}: {}\n", checkpoint.filename().string(), opened.error().message);
      continue;
    }
    const CheckpointInfo& info = opened->info();
    fmt::print("{}  step {}, {} samples, loss {}, {:.0f} s of training, {}\n", checkpoint.filename().string(),
               info.step, info.samples_committed,
               decimal_text(info.slots_committed > 0 ? info.loss_last : kUnknown, 4), info.seconds,
               info.engine);
  }
  if (const auto best = folder.best()) {
    fmt::print("{}  the one of step {}, which has the lowest evaluation loss: {}\n",
               folder.best_checkpoint().filename().string(), best->step,
               decimal_text(best->evaluation_loss.value_or(kUnknown), 4));
  }
  if (const auto database = RunDatabase::look(folder.database()); database.ok()) print_history(*database);
  const auto summary = MappedFile::open(folder.summary());
  if (!summary.ok()) return {};
  W5XDE_TRY(const Summary read, summary_from_json(text_of(summary->bytes())));
  fmt::print("\n{}", to_text(read));
  return {};
}

}  // namespace

void add_inspect(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("inspect", "What a safetensors file, a checkpoint or a run holds.");
  const auto target = std::make_shared<std::string>();
  command->add_option("FILE|RUN", *target, "The file, or the run's folder")->required();
  command->footer("Examples:\n  w5xde inspect model.safetensors\n  w5xde inspect runs/a");
  command->callback([target, &code] {
    code = exit_code(std::filesystem::is_directory(*target) ? inspect_run(*target) : inspect_file(*target));
  });
}

}  // namespace w5xde
