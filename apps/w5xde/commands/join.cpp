// w5xde join: nodes of this machine, in a pool anywhere.
#include "node/join.h"

#include <fmt/format.h>
#include <unistd.h>

#include "commands/commands.h"
#include "local_pool/engine_host.h"
#include "local_pool/interrupt.h"
#include "node/machine.h"

namespace w5xde {

namespace {

Result<ExitCode> run(const JoinCommand& options) {
  W5XDE_TRY(const Address address, parse_address(options.address));
  if (options.nodes == 0) return invalid("--nodes begins at 1");
  W5XDE_TRY(const auto engine, find_engine(options.engine));
  W5XDE_TRY(EngineHost host,
            EngineHost::start({.engine = engine, .threads = options.threads, .log = options.log}));
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

ExitCode join_pool(const JoinCommand& options) {
  const auto code = run(options);
  return code.ok() ? *code : report(code.error());
}

}  // namespace w5xde
