// w5xde join: nodes of this machine, in a pool anywhere.
#include <fmt/format.h>
#include <unistd.h>

#include "commands/command.h"
#include "local_pool/engine_host.h"
#include "local_pool/interrupt.h"
#include "node/machine.h"
#include "settings.h"

namespace w5xde {

namespace {

struct JoinCommand {
  std::string address;
  unsigned nodes = 1;
  unsigned threads = 1;
  unsigned cores = 0;
  unsigned attempts = 0;
  std::string name;
  std::string engine;
  std::string device = "auto";
  std::string log = "normal";
};

Result<ExitCode> run(const JoinCommand& options) {
  W5XDE_TRY(const LogTier log, parse_log_tier(options.log));
  W5XDE_TRY(const Address address, parse_address(options.address));
  if (options.nodes == 0) return invalid("--nodes must be at least 1");
  W5XDE_TRY(const auto engine, find_engine(options.engine));
  W5XDE_TRY(EngineHost host, EngineHost::start({.engine = engine, .threads = options.threads, .log = log}));
  const Interrupt interrupt;  // after the fork: the engine host must not inherit it
  W5XDE_CHECK(host.start_nodes(
      {.count = options.nodes,
       .address = address,
       .name = options.name.empty()
                   ? fmt::format("{}-{}", host_name().empty() ? "node" : host_name(), getpid())
                   : options.name,
       .device = options.device,
       .cores = options.cores,
       .model_cache = default_model_cache(),
       .attempts_max = options.attempts}));
  W5XDE_CHECK(host.wait(interrupt.descriptor()));
  // The engine host ends here. That tells its nodes to leave: they finish what they compute and say goodbye.
  return interrupt.came() ? kInterrupted : kSuccess;
}

}  // namespace

void add_join(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("join", "Give this machine to a pool.");
  const auto options = std::make_shared<JoinCommand>();
  command->add_option("HOST:PORT", options->address, "The coordinator")->required();
  command->add_option("--cores", options->cores, "How many cores of this machine to give; 0: all");
  command->add_option("--nodes", options->nodes, "How many nodes, sharing one engine and the cores");
  command->add_option("--threads", options->threads,
                      "For one slot's arithmetic; the run's, see its --threads");
  command->add_option("--name", options->name, "What the nodes are called; by default this machine's name");
  command->add_option("--attempts", options->attempts,
                      "Give up when this many attempts in a row have failed; 0: never. The coordinator is "
                      "tried every 30 s at the latest");
  command->add_option("--device", options->device, "auto, cpu, cuda or mps");
  command->add_option("--engine", options->engine, "The engine's shared library");
  command->add_option("--log", options->log, "silent, normal or verbose")->group(kRecordingGroup);
  command->footer("Examples:\n  w5xde join 192.168.1.10:5555\n  w5xde join pool.example.org:5555 --cores 2");
  command->callback([options, &code] { code = exit_code(run(*options)); });
}

}  // namespace w5xde
