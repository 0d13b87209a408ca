// w5xde export: a run's trained weights in one file, by the names that the model's state dict has.
#include <fmt/format.h>

#include "base/errors.h"
#include "commands/command.h"
#include "commands/newest_checkpoint.h"
#include "record/run_folder.h"
#include "record/weights.h"
#include "tensor/safetensors.h"

namespace w5xde {

namespace {

struct ExportCommand {
  std::string run;
  std::filesystem::path file;
  bool best = false;
};

Result<CheckpointFile> checkpoint_of(const ExportCommand& options, const RunFolder& folder) {
  return options.best ? CheckpointFile::open(folder.best_checkpoint()) : newest_checkpoint(folder);
}

Status export_weights(const ExportCommand& options) {
  if (options.file.extension() != ".safetensors")
    return invalid("{}: weights are written as safetensors; name the file FILE.safetensors",
                   options.file.string());
  W5XDE_TRY(const RunFolder folder, RunFolder::look(options.run));
  W5XDE_TRY(const CheckpointFile checkpoint, checkpoint_of(options, folder));
  W5XDE_TRY(const Weights weights, weights_of(checkpoint));
  W5XDE_CHECK(write_safetensors(options.file, weights.tensors,
                                {{"format", "pt"}, {"step", std::to_string(checkpoint.info().step)}}));
  fmt::print("{}: {} tensors of step {}\n", options.file.string(), weights.tensors.size(),
             checkpoint.info().step);
  return {};
}

}  // namespace

void add_export(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("export", "A run's trained weights as one safetensors file.");
  const auto options = std::make_shared<ExportCommand>();
  command->add_option("RUN", options->run, "The run folder")->required();
  command->add_option("FILE", options->file, "What to write: FILE.safetensors")->required();
  command->add_flag("--best", options->best,
                    "The checkpoint with the lowest evaluation loss; else the newest");
  command->footer(
      "Example:\n"
      "  w5xde export runs/a net.safetensors\n"
      "In Python, with the model's own class:\n"
      "  net.load_state_dict(safetensors.torch.load_file(\"net.safetensors\"))");
  command->callback([options, &code] { code = exit_code(export_weights(*options)); });
}

}  // namespace w5xde
