// w5xde serve: a coordinator without nodes of its own.
#include "commands/command.h"
#include "local_pool/coordinator_process.h"

namespace w5xde {

void add_serve(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("serve", "Coordinate a run; machines join with `w5xde join`.");
  const auto options = std::make_shared<CoordinatorCommand>();
  options->listen = "127.0.0.1:5555";
  add_coordinator_flags(*command, *options);
  command->option_defaults()->group(kPoolGroup);
  command->add_option("--listen", options->listen, "HOST:PORT");
  command->add_option("--wait-for", options->nodes_awaited, "Begin when this many nodes have joined");
  command->footer(
      "Examples:\n"
      "  w5xde serve runs/a --model lenet --data idx:fashion-mnist --epochs 5\n"
      "  w5xde serve runs/a --listen 0.0.0.0:5555    open to machines that are invited");
  command->callback([options, &code] { code = exit_code(run_coordinator(*options)); });
}

}  // namespace w5xde
