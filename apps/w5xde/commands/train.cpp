// w5xde train: a coordinator, and nodes on this machine.
#include "commands/command.h"
#include "local_pool/coordinator_process.h"

namespace w5xde {

void add_train(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("train", "Train on this machine: a coordinator and nodes.");
  const auto options = std::make_shared<CoordinatorCommand>();
  options->nodes = 2;
  add_coordinator_flags(*command, *options);
  command->add_option("--nodes", options->nodes, "Nodes on this machine");
  command->option_defaults()->group(kPoolGroup);
  command->add_option("--cores", options->cores, "How many cores of this machine they use; 0: all");
  command->add_option("--listen", options->listen, "Where other machines may join");
  add_device_flag(*command, options->device);
  command->footer(
      "Examples:\n"
      "  w5xde train --model mlp:10,20,10 --data synthetic --nodes 10 --seconds 30\n"
      "  w5xde train runs/a --model lenet --data idx:fashion-mnist --epochs 3\n"
      "  w5xde train runs/a                        go on where it stopped");
  command->callback([options, &code] {
    code = options->nodes > 0
               ? exit_code(run_coordinator(*options))
               : report(invalid("--nodes must be at least 1; `w5xde serve` is a coordinator without nodes"));
  });
}

}  // namespace w5xde
