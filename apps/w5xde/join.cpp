// w5xde join: nodes of this machine, in a pool anywhere.
#include "node/join.h"

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>

#include "commands.h"
#include "node/machine.h"
#include "nursery.h"

namespace w5xde {

namespace {

// Ctrl-C and its like, as something to wait for. Made once the nursery runs, which must not inherit it.
class Interrupt {
 public:
  Interrupt() {
    sigemptyset(&signals_);
    sigaddset(&signals_, SIGINT);
    sigaddset(&signals_, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals_, nullptr);
    descriptor_ = signalfd(-1, &signals_, SFD_CLOEXEC | SFD_NONBLOCK);
  }
  ~Interrupt() { close(descriptor_); }
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  int descriptor() const { return descriptor_; }
  // Whether it came. From then on a second one ends the program at once.
  bool came() const {
    signalfd_siginfo ignored;
    if (read(descriptor_, &ignored, sizeof ignored) != sizeof ignored) return false;
    sigprocmask(SIG_UNBLOCK, &signals_, nullptr);
    return true;
  }

 private:
  sigset_t signals_;
  int descriptor_;
};

Result<ExitCode> run(const JoinCommand& options) {
  W5XDE_TRY(const Address address, parse_address(options.address));
  if (options.nodes == 0) return invalid("--nodes begins at 1");
  W5XDE_TRY(const auto engine, find_engine(options.engine));
  W5XDE_TRY(Nursery nursery,
            Nursery::start({.engine = engine, .threads = options.threads, .log = options.log}));
  const Interrupt interrupt;
  W5XDE_CHECK(nursery.start_nodes(
      {.count = options.nodes,
       .address = address,
       .name = options.name.empty()
                   ? fmt::format("{}-{}", host_name().empty() ? "node" : host_name(), getpid())
                   : options.name,
       .device = options.device,
       .model_cache = default_model_cache(),
       .attempts_max = options.attempts}));
  W5XDE_CHECK(nursery.wait(interrupt.descriptor()));
  // The nursery's end, here, is what nodes are told to leave by: they finish what they compute, and say
  // goodbye.
  return interrupt.came() ? kInterrupted : kSuccess;
}

}  // namespace

ExitCode join_pool(const JoinCommand& options) {
  const auto code = run(options);
  return code.ok() ? *code : report(code.error());
}

}  // namespace w5xde
