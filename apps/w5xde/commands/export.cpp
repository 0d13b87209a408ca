// w5xde export: a run's trained weights in one file, by the names that the model's state dict has; or the
// model file that the run was given, with those weights.
#include <fmt/format.h>

#include "base/errors.h"
#include "base/file.h"
#include "commands/command.h"
#include "commands/trained_run.h"
#include "local_pool/run_model.h"
#include "record/weights.h"
#include "tensor/safetensors.h"

namespace w5xde {

namespace {

struct ExportCommand {
  TrainedRunOptions trained;
  std::filesystem::path file;
};

// The checkpoint's floats by the names of the model's state dict: needs no engine.
Status export_weights(const ExportCommand& options) {
  W5XDE_TRY(const RunFolder folder, RunFolder::look(options.trained.run));
  W5XDE_TRY(const CheckpointFile checkpoint, checkpoint_of(folder, options.trained));
  W5XDE_TRY(const Weights weights, weights_of(checkpoint, folder.frozen_file()));
  W5XDE_CHECK(write_safetensors(options.file, weights.tensors,
                                {{"format", "pt"}, {"step", std::to_string(checkpoint.info().step)}}));
  fmt::print("{}: {} tensors of step {}\n", options.file.string(), weights.tensors.size(),
             checkpoint.info().step);
  return {};
}

// The model file that the run was given, with the checkpoint's weights in it.
Status export_model(const ExportCommand& options) {
  W5XDE_TRY(const TrainedRun run, load_trained_run(options.trained));
  if (!std::filesystem::exists(run.folder.model_file())) {
    return invalid("{} is of the model {}, which is no file that weights could be put into; name the file {}",
                   options.trained.run, run.config.model,
                   std::filesystem::path(options.file).replace_extension(".safetensors").string());
  }
  // Renamed once it is whole.
  std::filesystem::path half = options.file;
  half += ".tmp";
  W5XDE_CHECK(run.engine->save_model(run.state(), half, {}));
  W5XDE_CHECK(real_disk().rename(half, options.file));
  fmt::print("{}: the model of step {}\n", options.file.string(), run.checkpoint.info().step);
  return {};
}

Status export_run(const ExportCommand& options) {
  W5XDE_CHECK(check_folder_of(options.file));
  const std::string ending = options.file.extension();
  if (ending == ".safetensors") return export_weights(options);
  if (is_named_as_script(options.file)) return export_model(options);
  return invalid(
      "{}: name the file FILE.safetensors for the weights, or FILE.pt for a TorchScript model with them",
      options.file.string());
}

}  // namespace

void add_export(CLI::App& app, ExitCode& code) {
  auto* command =
      app.add_subcommand("export", "A run's trained weights, or its TorchScript model with them.");
  const auto options = std::make_shared<ExportCommand>();
  // A model on a GPU would be saved as one.
  options->trained.device = "cpu";
  command->add_option("RUN", options->trained.run, "The run folder")->required();
  command->add_option("FILE", options->file, "What to write: FILE.safetensors or FILE.pt")->required();
  add_best_flag(*command, options->trained);
  command->add_option("--engine", options->trained.engine, "The engine's shared library, for FILE.pt");
  command->footer(
      "Example:\n"
      "  w5xde export runs/a net.safetensors\n"
      "In Python, with the model's own class:\n"
      "  net.load_state_dict(safetensors.torch.load_file(\"net.safetensors\"))\n"
      "Of a run with a TorchScript model, in evaluation mode:\n"
      "  w5xde export runs/a net.pt\n"
      "  net = torch.jit.load(\"net.pt\")");
  command->callback([options, &code] { code = exit_code(export_run(*options)); });
}

}  // namespace w5xde
