// w5xde join: nodes of this machine, in a pool anywhere.
#include <fmt/format.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "base/errors.h"
#include "commands/command.h"
#include "commands/figure_text.h"
#include "local_pool/engine_host.h"
#include "local_pool/interrupt.h"
#include "local_pool/route.h"
#include "local_pool/run_model.h"
#include "node/machine.h"
#include "settings.h"

namespace w5xde {

namespace {

struct JoinCommand {
  std::string target;
  CertificateFlags certificates;
  std::vector<std::string> accepted;
  unsigned nodes = 1;
  unsigned threads = 1;
  unsigned cores = 0;
  unsigned attempts = 0;
  std::string name;
  std::string engine;
  std::string device = "auto";
  std::string log = "normal";
  double progress_seconds = 30;
};

Result<Route> route_of(const JoinCommand& options) {
  const std::string& target = options.target;
  auto route = Route::find(target, options.certificates);
  if (route.ok() || target.starts_with(kInvitationScheme) || parse_address(target).ok()) return route;
  return invalid(
      "{}{}; a node joins what `w5xde serve` prints: an invitation, or its coordinator's HOST:PORT",
      route.error().message, std::filesystem::is_directory(target) ? ", but a folder" : "");
}

// What this machine does for its run, now and then. Standing by is said once.
class ProgressLines {
 public:
  ProgressLines(const Log& log, double every_seconds) : log_(log), every_seconds_(every_seconds) {}

  void say(const EngineHost::Work& work) {
    const std::uint64_t more = work.batches - std::exchange(batches_, work.batches);
    if (work.run.empty() || (more == 0 && idle_)) return;
    idle_ = more == 0;
    if (idle_) {
      log_.normal("run {}: nothing to compute here for {:.0f} s; `w5xde status` says why a node stands by",
                  work.run, every_seconds_);
    } else {
      log_.normal("run {}: {} batches computed on this machine, {} a second", work.run,
                  count_text(static_cast<double>(work.batches)),
                  decimal_text(static_cast<double>(more) / every_seconds_, 1));
    }
  }

 private:
  const Log& log_;
  double every_seconds_;
  std::uint64_t batches_ = 0;
  bool idle_ = false;
};

// The last line.
std::string farewell(const EngineHost::Work& work) {
  if (work.run.empty()) return fmt::format("left before it had joined a run: {}", work.why_left);
  return fmt::format("left run {}: {}; {} batches computed on this machine", work.run, work.why_left,
                     count_text(static_cast<double>(work.batches)));
}

Result<ExitCode> run(const JoinCommand& options) {
  W5XDE_TRY(const LogTier tier, parse_log_tier(options.log));
  W5XDE_TRY(const Route route, route_of(options));
  if (options.nodes == 0) return invalid("--nodes must be at least 1");
  if (!(options.progress_seconds >= 0)) return invalid("--progress-seconds must not be negative; 0: none");
  W5XDE_TRY(const auto engine, find_engine(options.engine));
  W5XDE_TRY(EngineHost host, EngineHost::start({.engine = engine, .threads = options.threads, .log = tier}));
  const Interrupt interrupt;  // after the fork: the engine host must not inherit it
  const Log log(tier);        // the same: it has a thread
  W5XDE_CHECK(host.start_nodes(
      {.count = options.nodes,
       .route = route,
       .accepted = options.accepted,
       .name = options.name.empty()
                   ? fmt::format("{}-{}", host_name().empty() ? "node" : host_name(), getpid())
                   : options.name,
       .device = options.device,
       .cores = options.cores,
       .model_cache = default_model_cache(),
       .attempts_max = options.attempts,
       .progress_seconds = options.progress_seconds}));
  ProgressLines progress(log, options.progress_seconds);
  auto work = host.wait(interrupt.descriptor(), [&](const auto& done) { progress.say(done); });
  if (!work.ok()) {
    const bool refused =
        work.error().kind == ErrorKind::incompatible || work.error().kind == ErrorKind::invalid;
    return refused ? std::move(work).error().within("refused") : std::move(work).error();
  }
  if (*work) {
    log.normal("{}", farewell(**work));
    return kSuccess;
  }
  // They finish what they compute and say goodbye. Who stops this again does not wait for that.
  const bool stopped = interrupt.came();
  if (const auto done = host.leave(); done.ok()) log.normal("{}", farewell(*done));
  return stopped ? kInterrupted : kSuccess;
}

}  // namespace

void add_join(CLI::App& app, ExitCode& code) {
  auto* command = app.add_subcommand("join", "Give this machine to a pool.");
  const auto options = std::make_shared<JoinCommand>();
  command
      ->add_option("INVITATION|HOST:PORT", options->target,
                   "What `w5xde serve` or `w5xde invite` has printed, or a file with it")
      ->required();
  command->add_option("--cores", options->cores, "How many cores of this machine to give; 0: all");
  command->add_option("--nodes", options->nodes, "How many nodes, sharing one engine and the cores");
  command->add_option("--threads", options->threads,
                      "For one slot's arithmetic; the run's, see its --threads");
  command->add_option("--name", options->name, "What the nodes are called; by default this machine's name");
  command->add_option("--attempts", options->attempts,
                      "Give up when this many attempts in a row have failed; 0: never. The coordinator is "
                      "tried every 30 s at the latest");
  add_device_flag(*command, options->device);
  command->add_option("--engine", options->engine, "The engine's shared library");
  command
      ->add_option("--accept", options->accepted,
                   "The SHA-256 of a model file that may run here although no invitation brought it")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kPoolGroup);
  add_certificate_flags(*command, options->certificates,
                        "The coordinator's certificate must lead to one of these, PEM, and bear its HOST");
  add_log_flag(*command, options->log);
  command
      ->add_option("--progress-seconds", options->progress_seconds,
                   "How often to say what this machine has computed; 0: never")
      ->group(kRecordingGroup);
  command->footer("Examples:\n  w5xde join w5xde://HOST:5555/TEXT --cores 2\n  w5xde join 127.0.0.1:5555");
  command->callback([options, &code] { code = exit_code(run(*options)); });
}

}  // namespace w5xde
