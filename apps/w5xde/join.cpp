// w5xde join: nodes of this machine, in a pool anywhere.
#include "node/join.h"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "commands.h"
#include "nursery.h"

namespace w5xde {

namespace {

std::string host_name() {
  char name[128] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "node";
}

std::string model_cache() {
  const char* home = std::getenv("HOME");
  return (home == nullptr ? "/tmp" : std::string(home) + "/.cache") + "/w5xde/models";
}

Status run(const JoinCommand& options) {
  W5XDE_TRY(const Address address, parse_address(options.address));
  if (options.nodes == 0) return invalid("--nodes begins at 1");
  W5XDE_TRY(const auto engine, find_engine(options.engine));
  // Ctrl-C reaches the nodes through the nursery's end, below.
  W5XDE_TRY(Nursery nursery,
            Nursery::start({.engine = engine, .threads = options.threads, .log = options.log}));
  W5XDE_CHECK(nursery.start_nodes({.count = options.nodes,
                                   .address = address,
                                   .name = options.name.empty() ? fmt::format("{}-{}", host_name(), getpid()) : options.name,
                                   .device = options.device,
                                   .model_cache = model_cache(),
                                   .attempts_max = options.attempts}));
  return nursery.wait();
}

}  // namespace

ExitCode join_pool(const JoinCommand& options) {
  const Status status = run(options);
  return status.ok() ? kSuccess : report(status.error());
}

}  // namespace w5xde
