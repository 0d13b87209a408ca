#include "local_pool/coordinator_process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/errors.h"
#include "base/hex.h"
#include "base/work_progress.h"
#include "coordinator/access_control.h"
#include "coordinator/coordinator.h"
#include "data/fingerprint.h"
#include "local_pool/batch_choice.h"
#include "local_pool/channel_statistics.h"
#include "local_pool/engine_host.h"
#include "local_pool/join_hint.h"
#include "local_pool/progress.h"
#include "local_pool/protection.h"
#include "local_pool/route.h"
#include "local_pool/run_model.h"
#include "local_pool/run_request.h"
#include "net/crypto.h"
#include "net/signals.h"
#include "net/tcp.h"
#include "node/machine.h"

namespace w5xde {

namespace {

// Nodes of this machine end with this process. Should one not notice, it does not try for ever.
constexpr unsigned kLocalAttemptsMax = 12;
constexpr auto kNodesWatchedEvery = std::chrono::milliseconds(500);

// The run's newest checkpoint; of step 0 when it is new. A model that is a file is copied into the folder, so
// that a run needs nothing but its folder.
Result<CheckpointFile> first_checkpoint(const RunFolder& folder, const RunConfig& config, const RunData& data,
                                        const std::string& data_fingerprint, const std::string& device,
                                        EngineHost& host, const Log& log) {
  std::vector<std::string> skipped;
  W5XDE_TRY(auto found, folder.newest(&skipped));
  for (const std::string& line : skipped) log.error("{}", line);
  if (found) {
    log.normal("going on from step {} of {}", found->info().step, folder.path().string());
    return std::move(*found);
  }
  std::optional<MappedFile> script;  // it may be the very file that is removed here
  if (is_script(config.model)) {
    W5XDE_TRY(script, MappedFile::open(config.model));
  }
  std::error_code ignored;  // there may be one of a start that failed
  std::filesystem::remove(folder.model_file(), ignored);
  std::filesystem::remove(folder.frozen_file(), ignored);
  std::filesystem::path model_file;
  if (script) {
    model_file = folder.model_file();
    const Bytes bytes = script->bytes();
    W5XDE_CHECK(write_file_atomically(model_file, {&bytes, 1}));
  }
  W5XDE_CHECK(host.initialise({.model = model_options(config, *data.train, device),
                               .model_file = model_file,
                               .seed = config.seed,
                               .init = config.init,
                               .train = config.train,
                               .frozen_file = folder.frozen_file(),
                               .data = config.data,
                               .data_fingerprint = data_fingerprint,
                               .batch = config.batch,
                               .checkpoint = folder.checkpoint_path(0)}));
  return CheckpointFile::open(folder.checkpoint_path(0));
}

// The folder and those around it that are not there yet, the innermost first.
std::vector<std::filesystem::path> missing_folders(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> missing;
  auto at = std::filesystem::absolute(folder).lexically_normal();
  if (!at.has_filename()) at = at.parent_path();
  std::error_code ignored;
  for (; at.has_relative_path() && !std::filesystem::exists(at, ignored); at = at.parent_path())
    missing.push_back(at);
  return missing;
}

// A start that failed leaves nothing behind, and nothing of others is touched: what is around the run's
// folder goes if it is empty.
void remove_new_folders(const std::vector<std::filesystem::path>& made) {
  std::error_code ignored;
  for (const auto& folder : made) {
    if (folder == made.front()) {
      std::filesystem::remove_all(folder, ignored);
    } else {
      std::filesystem::remove(folder, ignored);
    }
  }
}

// On this machine alone, whoever comes is welcome; elsewhere peers prove that they were invited.
Result<bool> needs_tls(const CoordinatorCommand& options, const Address& address) {
  W5XDE_CHECK(options.certificates.check());
  const bool asked_for =
      options.tls || !options.certificates.certificate.empty() || !options.certificates.authority.empty();
  if (asked_for && options.insecure)
    return invalid(
        "--insecure is without TLS; leave it out, or leave out --tls, --certificate and --authority");
  return asked_for || (!options.insecure && !is_loopback(address.host));
}

std::int64_t seconds_since_1970() {
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

class CoordinatorProcess {
 public:
  CoordinatorProcess(const CoordinatorCommand& options, LogTier log, RunRequest asked, EngineHost host)
      : options_(options), asked_(std::move(asked)), host_(std::move(host)), log_(log) {}

  Result<ExitCode> run() {
    W5XDE_TRY(const Address address, parse_address(options_.listen));
    W5XDE_TRY(const RunData data, open_data(asked_.config, &log_));
    const auto missing = missing_folders(asked_.folder);
    W5XDE_TRY(const RunFolder folder, RunFolder::open(asked_.folder));
    auto code = run_in(folder, address, data);
    // While the folder is this process's.
    if (!code.ok() && !has_begun_) remove_new_folders(missing);
    return code;
  }

 private:
  Result<ExitCode> run_in(const RunFolder& folder, const Address& address, const RunData& data) {
    if (asked_.resumed) {
      W5XDE_TRY(const bool finished, says_finished(folder, data));
      if (finished) return kSuccess;
    }
    W5XDE_CHECK(protect(address, folder));
    W5XDE_CHECK(measure(data));
    W5XDE_CHECK(write_run_toml(folder.run_toml(), asked_.config));
    W5XDE_TRY(auto coordinator, listen(address, folder));
    const Signals signals(loop_, {SIGINT, SIGTERM}, [&](int) {
      if (coordinator->stopped_early()) loop_.stop();
      coordinator->stop("stopped");
      stopped_ = true;
    });
    introduce(folder, coordinator->address());
    W5XDE_TRY(RunMaterial material, material_of(folder, data));
    // Nodes come last: everything that could keep the run from beginning has been checked.
    if (options_.nodes > 0) {
      W5XDE_CHECK(start_nodes(folder, coordinator->address().port));
    } else {
      host_.reset();  // a coordinator alone is small
    }
    return train(*coordinator, folder, std::move(material));
  }

  Status protect(const Address& address, const RunFolder& folder) {
    W5XDE_TRY(const bool with_tls, needs_tls(options_, address));
    if (!with_tls) return {};
    W5XDE_TRY(protection_, Protection::of(folder, options_.certificates));
    access_.emplace(loop_,
                    AccessControl::Options{.guest_list = folder.invitations(),
                                           .authority_vouches = !options_.certificates.authority.empty(),
                                           .now = seconds_since_1970},
                    log_);
    return {};
  }

  // Says where the run can be reached, and how.
  void introduce(const RunFolder& folder, const Address& address) {
    const std::string certificate = protection_ ? hex_text(protection_->identity.fingerprint()) : "";
    folder.introduce(address.to_string(), command_to_go_on(RunFolder::kRunWord), certificate);
    log_.normal("{} listens on {}", folder.path().string(), address.to_string());
    if (protection_) {
      print_invitation(folder, address);
    } else if (options_.insecure) {
      log_.normal(
          "warning: --insecure: nothing is encrypted, and whoever reaches the port can join and look");
    } else if (options_.nodes == 0) {
      log_.normal("only this machine can join; --listen 0.0.0.0:5555 invites others");
    }
  }

  // On the terminal and not in the log: it is a secret.
  void print_invitation(const RunFolder& folder, const Address& address) const {
    const auto guests = GuestList::read(folder.invitations());
    const GuestList::Entry* entry = guests.ok() ? guests->find(kNodesName) : nullptr;
    if (entry == nullptr || entry->revoked) return;
    const Invitation invitation =
        invitation_of(*entry, address_for_others(address), protection_->identity.fingerprint());
    fmt::print("join with: w5xde join {}\n", invitation.to_string());
    std::fflush(stdout);
  }

  // Whether nothing is left to do; then it has said so.
  Result<bool> says_finished(const RunFolder& folder, const RunData& data) const {
    W5XDE_TRY(const auto newest, folder.newest());
    if (!newest) return false;
    const std::string needed =
        what_lets_it_go_on(asked_.config, newest->info(), *data.train, data.evaluation != nullptr);
    if (needed.empty()) return false;
    log_.normal("{} is finished, at step {}. To go on, give {}", asked_.folder, newest->info().step, needed);
    return true;
  }

  // Everything that training begins with, checked.
  Result<RunMaterial> material_of(const RunFolder& folder, const RunData& data) {
    W5XDE_TRY(const std::string data_fingerprint, fingerprint_of(*data.train));
    W5XDE_TRY(CheckpointFile checkpoint,
              first_checkpoint(folder, asked_.config, data, data_fingerprint, options_.device, *host_, log_));
    std::optional<MappedFile> model_file;
    std::string model_hash;
    if (const auto file = folder.engine_file(); !file.empty()) {
      W5XDE_TRY(const MappedFile read_once, MappedFile::open(file));
      WorkProgress progress(&log_, loop_, "hashing " + file.string());
      model_hash = sha256_hex(read_once.bytes(), progress.teller());
      // Mapped anew, it takes no memory until a node asks for it.
      W5XDE_TRY(model_file, MappedFile::open(file));
    }
    W5XDE_CHECK(check_unchanged(checkpoint.info(), data_fingerprint, model_hash));
    std::string loss = loss_of(asked_.config, checkpoint.info(), data);
    W5XDE_CHECK(check_targets(asked_.config, loss));
    return RunMaterial{std::move(checkpoint), data.train,      data.evaluation,
                       std::move(model_file), std::move(loss), std::move(model_hash)};
  }

  // Whether data and model are those that the run was begun with.
  Status check_unchanged(const CheckpointInfo& begun, const std::string& data_fingerprint,
                         const std::string& model_hash) const {
    const auto changed = [](const std::string& before, const std::string& now) {
      return !before.empty() && before != now;
    };
    if (changed(begun.data_fingerprint, data_fingerprint)) {
      return invalid(
          "the samples of {} are not those that this run was begun with, and its result would be of neither. "
          "Put the files back as they were; or begin a new run on these samples, with this one's weights: "
          "--init {}",
          asked_.config.data, asked_.folder);
    }
    if (changed(begun.model_hash, model_hash)) {
      return invalid(
          "the model's file in {} is not the one that this run was begun with. Put it back; or begin a new "
          "run with this one's weights: --model FILE --init {}",
          asked_.folder, asked_.folder);
    }
    // Who names the model's file once more means the one that it was.
    const std::string& file = asked_.config.model;
    const bool named = asked_.resumed && options_.given.contains("model") && asked_.config.train.empty();
    if (!named || begun.model_hash.empty()) return {};
    W5XDE_TRY(const std::string hash, hash_of_first({file}));
    if (hash.empty() || hash == begun.model_hash) return {};
    return invalid(
        "{} is not the model that this run was begun with, of which {} has a copy. To go on with that one, "
        "leave --model out; or begin a new run with this one's weights: --init {}",
        file, asked_.folder, asked_.folder);
  }

  Status start_nodes(const RunFolder& folder, std::uint16_t port) {
    W5XDE_TRY(const Route route, Route::to_owner(folder.path(), {"127.0.0.1", port}));
    return host_->start_nodes({.count = options_.nodes,
                               .route = route,
                               .name = "node",
                               .device = options_.device,
                               .cores = options_.cores,
                               .model_cache = default_model_cache(),
                               .attempts_max = kLocalAttemptsMax});
  }

  Status measure(const RunData& data) {
    if (asked_.config.normalize_measured) W5XDE_CHECK(measure_channels(data));
    return asked_.config.batch_measured ? measure_batch(data) : Status();
  }

  Status measure_channels(const RunData& data) {
    RunConfig& config = asked_.config;
    WorkProgress progress(&log_, loop_, "measuring the channels of the samples");
    W5XDE_CHECK(measure_normalization(*data.train, config.preparation, progress.teller()));
    config.normalize_measured = false;
    log_.normal("--normalize auto is --normalize {}", normalize_of(config.preparation));
    return {};
  }

  // Before any node computes here: nodes would slow the measurement.
  Status measure_batch(const RunData& data) {
    RunConfig& config = asked_.config;
    const auto sizes = batch_sizes(config, data.train->samples());
    W5XDE_TRY(trials_, host_->try_batches(model_options(config, *data.train, options_.device),
                                          is_script(config.model) ? config.model : "", config.seed,
                                          config.data, sizes));
    for (const BatchTrial& trial : trials_)
      log_.normal("{} samples a slot: {:.0f} samples/s", trial.batch, trial.samples_per_second);
    const BatchChoice choice = choose_batch(config, trials_);
    config.batch = choice.batch;
    config.slots = choice.slots;
    config.batch_measured = false;
    log_.normal("--batch auto is --batch {} --slots {}", config.batch, config.slots);
    return config.check();
  }

  Result<std::unique_ptr<Coordinator>> listen(const Address& address, const RunFolder& folder) {
    const Listen listen = [&](Listener::Accepted accepted) -> Result<std::unique_ptr<Listener>> {
      if (protection_) {
        accepted = [accepted = std::move(accepted), tls = protection_->tls](std::unique_ptr<Stream> stream) {
          accepted(tls.wrap(std::move(stream)));
        };
      }
      return listen_tcp(loop_, address, {}, std::move(accepted));
    };
    auto coordinator = Coordinator::start(
        loop_, listen,
        {.run = folder.path().filename().string(),
         .config = asked_.config,
         .nodes_awaited = std::max(1u, options_.nodes > 0 ? options_.nodes : options_.nodes_awaited),
         .threads = std::max(1u, std::thread::hardware_concurrency()) - 1,
         .access = access_ ? &*access_ : nullptr},
        folder, log_);
    if (coordinator.ok()) return coordinator;
    return std::move(coordinator)
        .error()
        .within(fmt::format("--listen {} is not available; choose another port, or 0 for any free one",
                            options_.listen));
  }

  Result<ExitCode> train(Coordinator& coordinator, const RunFolder& folder, RunMaterial material) {
    Progress progress(log_, asked_.config);
    coordinator.on_progress = [&](const StatusReport& report) { progress.show(report); };
    std::uint64_t memory = 0;
    coordinator.on_finishing = [&] {
      memory = proportional_set_bytes(getpid());
      if (!host_) return;
      for (const pid_t pid : host_->processes()) memory += proportional_set_bytes(pid);
    };
    W5XDE_CHECK(coordinator.begin(std::move(material)));
    has_begun_ = true;
    // One that is there is of a run that has ended, and this one goes on. Where it cannot be deleted, it is
    // replaced in the end.
    (void)folder.disk().remove(folder.summary());
    watch_nodes(coordinator);
    invite_nodes(coordinator);
    loop_.run_until([&] { return coordinator.outcome().has_value() && coordinator.nodes_gone(); },
                    [&] { return coordinator.step_ends_soon(); });
    progress.end();
    if (!coordinator.outcome()) return kInterrupted;  // the second signal does not wait
    Summary summary = coordinator.summary();
    summary.memory_bytes = memory;
    summary.batch_trials = trials_;
    summary.outcome = outcome_of(coordinator);
    if (const auto best = folder.best())
      summary.best = BestStats{.step = best->step, .loss = best->evaluation_loss.value_or(kUnknown)};
    const std::string json = to_json(summary);
    W5XDE_CHECK(write_text(folder.summary(), json));
    W5XDE_CHECK(write_text(options_.json, json));
    const auto checkpoints = folder.checkpoints();
    if (!options_.no_summary) {
      fmt::print("{}", to_text(summary));
      if (!checkpoints.empty()) fmt::print("checkpoint  {}\n", checkpoints.front().string());
      std::fflush(stdout);
    }
    W5XDE_CHECK(*coordinator.outcome());
    if (nodes_lost_) return *nodes_lost_;
    if (!stopped_) return kSuccess;
    log_.normal("stopped; go on with: {}", command_to_go_on(folder.path().string()));
    return kInterrupted;
  }

  std::string outcome_of(const Coordinator& coordinator) const {
    if (!coordinator.outcome()->ok()) return coordinator.outcome()->error().message;
    if (nodes_lost_) return nodes_lost_->message;
    return coordinator.stopped_early() ? kStopped : kFinished;
  }

  std::string command_to_go_on(const std::string& run) const {
    std::string command = fmt::format("w5xde {} {}", options_.nodes > 0 ? "train" : "serve", run);
    if (options_.nodes > 0) command += fmt::format(" --nodes {}", options_.nodes);
    if (options_.listen != CoordinatorCommand().listen) command += " --listen " + options_.listen;
    const CertificateFlags& own = options_.certificates;
    if (!own.certificate.empty())
      command += fmt::format(" --certificate {} --key {}", own.certificate, own.key);
    if (!own.authority.empty()) command += " --authority " + own.authority;
    return command + (options_.insecure ? " --insecure" : "") + (options_.tls ? " --tls" : "");
  }

  void invite_nodes(Coordinator& coordinator) {
    if (options_.nodes > 0 || coordinator.outcome() || stopped_) return;
    if (join_hint_.due(!coordinator.status().nodes.empty(), loop_.now())) {
      const std::string how =
          protection_
              ? fmt::format("the invitation that was printed, or one of `w5xde invite {}`", asked_.folder)
              : "w5xde join " + address_for_others(coordinator.address()).to_string();
      log_.normal("waiting for nodes; join with: {}", how);
    }
    loop_.after(kNodesWatchedEvery, [this, &coordinator] { invite_nodes(coordinator); });
  }

  // Nodes of this machine that are killed are started again; those that ended with an error are not. When all
  // of them have ended and no other node is in, the run would wait for ever.
  void watch_nodes(Coordinator& coordinator) {
    if (!host_ || coordinator.outcome() || stopped_ || nodes_lost_) return;
    if (!local_end_) local_end_ = host_->all_ended();
    if (local_end_ && coordinator.status().nodes.empty()) {
      nodes_lost_ = Error(*local_end_).within("no node is left");
      return coordinator.stop("every node of this machine has ended");
    }
    loop_.after(kNodesWatchedEvery, [this, &coordinator] { watch_nodes(coordinator); });
  }

  const CoordinatorCommand& options_;
  RunRequest asked_;
  std::optional<EngineHost> host_;  // before the log: it is forked while this process has one thread
  Log log_;
  AsioLoop loop_;
  std::vector<BatchTrial> trials_;  // where the batch was measured
  bool has_begun_ = false;          // until then nothing of a new run is worth keeping
  bool stopped_ = false;
  JoinHint join_hint_;
  std::optional<Protection> protection_;  // none: without TLS
  std::optional<AccessControl> access_;   // likewise
  std::optional<Error> local_end_;        // why the last node of this machine ended
  std::optional<Error> nodes_lost_;       // the same, and nobody else was in
};

}  // namespace

void add_coordinator_flags(CLI::App& command, CoordinatorCommand& options) {
  command.add_option("RUN", options.run, "A run folder to begin or go on with, or a run.toml");
  add_settings(command, options.given);
  command
      .add_flag("--insecure", options.insecure,
                "Listen beyond this machine without TLS: whoever reaches the port can join")
      ->group(kPoolGroup);
  command
      .add_flag("--tls", options.tls,
                "Encrypt, and let in only who was invited, on this machine too; elsewhere that is always so")
      ->group(kPoolGroup);
  add_certificate_flags(
      command, options.certificates,
      "Let in only nodes with a certificate that leads to one of these, PEM; they need no invitation");
  command.add_option("--engine", options.engine, "The engine's shared library")->group(kPoolGroup);
  command.add_option("--json", options.json, "Write the summary to this file too")->group(kRecordingGroup);
  add_log_flag(command, options.log);
  command.add_flag("--no-summary", options.no_summary, "Do not print the summary at the end")
      ->group(kRecordingGroup);
}

Result<ExitCode> run_coordinator(const CoordinatorCommand& options) {
  W5XDE_TRY(const LogTier log, parse_log_tier(options.log));
  W5XDE_CHECK(check_folder_of(options.json));
  W5XDE_TRY(RunRequest asked, RunRequest::read(options.run, options.given));
  W5XDE_TRY(const auto engine, find_engine(options.engine));
  // What nodes of this machine would say, the coordinator says of them.
  const LogTier of_nodes = log == LogTier::verbose ? log : LogTier::silent;
  W5XDE_TRY(EngineHost host, EngineHost::start({.engine = engine,
                                                .threads = asked.config.threads,
                                                .log = of_nodes,
                                                .load_at_once = options.nodes > 0 || !asked.resumed}));
  return CoordinatorProcess(options, log, std::move(asked), std::move(host)).run();
}

}  // namespace w5xde
