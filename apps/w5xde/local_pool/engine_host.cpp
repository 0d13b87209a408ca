#include "local_pool/engine_host.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/errors.h"
#include "base/file.h"
#include "base/random.h"
#include "coordinator/batches.h"
#include "local_pool/batch_choice.h"
#include "local_pool/part_training.h"
#include "local_pool/run_model.h"
#include "node/join.h"
#include "node/machine.h"
#include "record/checkpoint.h"
#include "record/weights.h"

namespace w5xde {

using nlohmann::json;

static void to_json(json& out, const Shape& shape) {
  out = std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end());
}
static void from_json(const json& in, Shape& shape) {
  shape = Shape::make(in.get<std::vector<std::int64_t>>()).value();
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SampleField, name, dtype, shape, pixels, ids)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SamplePreparation, mean, deviation, crop_pixels, flip)
static void to_json(json& out, const ModelOptions& model) {
  out = {{"model", model.model},     {"loss", model.loss},       {"inputs", model.inputs},
         {"targets", model.targets}, {"classes", model.classes}, {"threads", model.threads},
         {"device", model.device},   {"compute", model.compute}, {"preparation", model.preparation}};
  if (model.ignore_index) out["ignore_index"] = *model.ignore_index;
}
static void from_json(const json& in, ModelOptions& model) {
  in.at("model").get_to(model.model);
  in.at("loss").get_to(model.loss);
  in.at("inputs").get_to(model.inputs);
  in.at("targets").get_to(model.targets);
  in.at("classes").get_to(model.classes);
  if (in.contains("ignore_index")) model.ignore_index = in.at("ignore_index").get<std::int64_t>();
  in.at("threads").get_to(model.threads);
  in.at("device").get_to(model.device);
  in.at("compute").get_to(model.compute);
  in.at("preparation").get_to(model.preparation);
}
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EngineHost::NewRun, model, model_file, seed, init, train, frozen_file,
                                   data, data_fingerprint, batch, checkpoint)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Address, host, port)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Route, address, invitation, certificate, key, authority)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EngineHost::Nodes, count, route, accepted, name, device, cores,
                                   model_cache, attempts_max, progress_seconds)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(EngineHost::Work, run, batches, why_left)

namespace {

// Requests and answers are one packet each.
constexpr std::size_t kPacketBytesMax = 64 * 1024;
// A node that fails this often in a row, each time within a second, is not started again.
constexpr unsigned kQuickFailuresMax = 3;
// A node that fails exits with this and the kind of its error.
constexpr int kFirstErrorCode = 10;

json json_of(const Error& error) {
  return {{"error", error.message}, {"kind", static_cast<int>(error.kind)}};
}

// The next packet; none when the other side is gone or, with MSG_DONTWAIT, has sent nothing.
std::optional<json> receive(int socket, int flags = 0) {
  std::string packet(kPacketBytesMax, '\0');
  ssize_t count = 0;
  do {
    count = recv(socket, packet.data(), packet.size(), flags);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return std::nullopt;
  packet.resize(static_cast<std::size_t>(count));
  return json::parse(packet, nullptr, false);
}

std::optional<Error> error_in(const json& packet) {
  if (!packet.contains("error")) return std::nullopt;
  return Error{static_cast<ErrorKind>(packet.at("kind").get<int>()), packet.at("error")};
}

bool send_packet(int socket, const json& packet, int flags = 0) {
  const std::string text = packet.dump(-1, ' ', false, json::error_handler_t::replace);
  return send(socket, text.data(), text.size(), flags | MSG_NOSIGNAL) >= 0;
}

Result<json> ask(int socket, const json& request) {
  if (!send_packet(socket, request)) return system_error("asking the engine host", errno);
  auto answer = receive(socket);
  if (!answer) return Error{ErrorKind::system, "the process that loads the engine died"};
  if (auto error = error_in(*answer)) return std::move(*error);
  return std::move(*answer);
}

// What targets look like is known from the data alone, and a loss that is not cross-entropy depends on it.
// What a model of somebody's own does with real samples is known once it has had some.
Status try_a_slot(Engine& engine, const EngineHost::NewRun& run, std::span<const float> state) {
  const bool built_in = run.model_file.empty();
  if (built_in && engine.description().loss == name_of(Loss::cross_entropy)) return {};
  W5XDE_TRY(const auto data, open_dataset(run.data, Split::train, run.seed, run.model.ignore_index));
  const auto batch = static_cast<std::uint32_t>(std::min<std::uint64_t>(run.batch, data->samples()));
  Batches batches(data, {.samples = data->samples(), .batch = batch, .seed = run.seed});
  AlignedBuffer contribution(state.size_bytes());
  W5XDE_TRY(const Batch first, batches.make(0, 1));
  W5XDE_CHECK(engine.compute(state, first.samples(), run.seed,
                             {reinterpret_cast<float*>(contribution.data()), state.size()}));
  return {};
}

Result<json> initialise_here(const EngineLibrary& library, const json& request) {
  const auto run = request.at("run").get<EngineHost::NewRun>();
  W5XDE_TRY(ModelWithState begun, make_with_state(library, run.model, run.model_file));
  W5XDE_CHECK(begun.engine->initialise(mix(run.seed), begun.state()));
  if (!run.init.empty()) {
    auto weights = open_weights(run.init);
    if (!weights.ok()) return std::move(weights).error().within("--init");
    const ModelDescription& all = begun.engine->description();
    W5XDE_CHECK(take_weights(*weights, *all.parameters, *all.buffers, begun.state()));
  }
  if (!run.train.empty())
    W5XDE_CHECK(train_part(library, run.model, {run.train, run.model_file, run.frozen_file}, begun));
  const ModelDescription& description = begun.engine->description();
  const std::span<float> state = begun.state();
  W5XDE_CHECK(try_a_slot(*begun.engine, run, state));
  W5XDE_TRY(std::string model_hash, hash_of_first({run.model_file, run.frozen_file}));
  const CheckpointInfo info{.seed = run.seed,
                            .model = run.model.model,
                            .loss = description.loss,
                            .engine = begun.engine->name(),
                            .processor = processor_name(),
                            .model_fingerprint = fingerprint_of(description),
                            .data_fingerprint = run.data_fingerprint,
                            .model_hash = std::move(model_hash)};
  std::vector<NamedBlock> blocks = {
      {"parameters", description.parameters.get(), state.first(description.parameters->floats())}};
  if (description.buffers->floats() > 0) {
    blocks.push_back({"buffers", description.buffers.get(), state.subspan(description.parameters->floats())});
  }
  W5XDE_CHECK(write_checkpoint(run.checkpoint, info, blocks));
  return json::object();
}

Result<json> try_batches_here(const EngineLibrary& library, const json& request) {
  W5XDE_TRY(const auto engine, library.make(request.at("model").get<ModelOptions>(),
                                            request.at("model_file").get<std::string>()));
  const std::uint64_t seed = request.at("seed");
  W5XDE_TRY(const auto data, open_dataset(request.at("data").get<std::string>(), Split::train, seed,
                                          request.at("model").get<ModelOptions>().ignore_index));
  const auto sizes = request.at("sizes").get<std::vector<std::uint32_t>>();
  W5XDE_TRY(const auto trials, try_batches(*engine, data, seed, sizes));
  json rates = json::array();
  for (const BatchTrial& trial : trials) rates.push_back({trial.batch, trial.samples_per_second});
  return json{{"rates", std::move(rates)}};
}

// What the engine host does in its own process.
class HostProcess {
 public:
  HostProcess(int socket, int ended, const EngineHost::Options& options)
      : socket_(socket), ended_(ended), options_(options) {}

  // noexcept: what is thrown in this process or in those that it forks must not unwind into main, whose
  // objects are the first process's.
  [[noreturn]] void run() noexcept {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    // Ctrl-C reaches every process of the terminal; the coordinator decides when its nodes leave.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_DFL);
    std::optional<Result<EngineLibrary>> loaded;
    if (options_.load_at_once) loaded = EngineLibrary::load(options_.engine, options_.threads);
    while (true) {
      pollfd waiting[] = {{socket_, POLLIN, 0}, {reports_[0], POLLIN, 0}};
      poll(waiting, 2, 50);
      if (waiting[1].revents != 0) hear();
      reap();
      tell_of_progress();
      if (waiting[0].revents == 0) continue;
      const auto request = receive(socket_);
      if (!request) end();
      if (!loaded) loaded = EngineLibrary::load(options_.engine, options_.threads);
      if (!loaded->ok()) {
        send_packet(socket_, json_of(loaded->error()));
      } else {
        answer(**loaded, *request);
      }
    }
  }

 private:
  struct NodeProcess {
    unsigned number = 0;
    unsigned quick_failures = 0;
    Instant started;
  };

  void answer(const EngineLibrary& library, const json& request) {
    const std::string what = request.at("do");
    if (what == "initialise") {
      in_child([&] { return initialise_here(library, request); });
    } else if (what == "try batches") {
      in_child([&] { return try_batches_here(library, request); });
    } else if (what == "nodes") {
      library_ = &library;
      nodes_ = request.at("nodes").get<EngineHost::Nodes>();
      told_at_ = SteadyClock().now();
      if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, reports_) != 0) {
        send_packet(socket_, json_of(system_error("making a socket pair", errno)));
        return;
      }
      for (unsigned number = 1; number <= nodes_->count; ++number) start({.number = number});
      send_packet(socket_, json::object());
    } else if (what == "processes") {
      json pids = {getpid()};
      for (const auto& [pid, child] : children_) pids.push_back(pid);
      send_packet(socket_, {{"pids", pids}});
    }
  }

  // Computing starts threads, and nodes must be forked from a process that has none.
  template <class Work>
  void in_child(const Work& work) {
    const pid_t pid = fork();
    if (pid == 0) {
      const Result<json> result = work();
      send_packet(socket_, result.ok() ? *result : json_of(result.error()));
      _exit(0);
    }
    int state = 0;
    waitpid(pid, &state, 0);
    if (pid < 0 || !WIFEXITED(state) || WEXITSTATUS(state) != 0) {
      send_packet(socket_, json_of(Error{ErrorKind::system, "the process that makes the model died"}));
    }
  }

  void start(NodeProcess node) {
    node.started = SteadyClock().now();
    const pid_t pid = fork();
    if (pid == 0) run_node(node.number);
    if (pid > 0) children_[pid] = node;
  }

  JoinOptions join_options(unsigned number) const {
    Machine machine = Machine::here();
    if (nodes_->cores > 0) machine.cores = std::min<std::uint32_t>(machine.cores, nodes_->cores);
    JoinOptions options{.address = nodes_->route.address,
                        .node = {.name = fmt::format("{}-{}", nodes_->name, number),
                                 .threads = options_.threads,
                                 .device = nodes_->device,
                                 .machine = machine,
                                 .model_cache = nodes_->model_cache,
                                 .accepted = nodes_->accepted},
                        .attempts_max = nodes_->attempts_max};
    options.node.make_engine = [this](const ModelOptions& model, const std::filesystem::path& file) {
      return library_->make(model, file);
    };
    return options;
  }

  [[noreturn]] void run_node(unsigned number) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    close(socket_);
    close(ended_);
    close(reports_[0]);
    JoinOptions options = join_options(number);
    // A report that finds no room is followed by another.
    const auto report = [this](json what) {
      what["pid"] = getpid();
      send_packet(reports_[1], what, MSG_DONTWAIT);
    };
    options.on_progress = [&report](const Contributed& done) {
      report({{"run", done.run}, {"batches", done.batches}});
    };
    int code = 0;
    {
      const Log log(options_.log);
      if (const auto why = join_over(nodes_->route, options, log); why.ok()) {
        report({{"why_left", *why}});
      } else {
        log.error("{}: {}", options.node.name, why.error().message);
        report(json_of(why.error()));
        code = kFirstErrorCode + static_cast<int>(why.error().kind);
      }
    }
    _exit(code);
  }

  // What nodes have said of themselves until now.
  void hear() {
    while (const auto report = receive(reports_[0], MSG_DONTWAIT)) {
      const auto pid = report->at("pid").get<pid_t>();
      if (const auto error = error_in(*report)) {
        reasons_[pid] = *error;
      } else if (report->contains("why_left")) {
        work_.why_left = report->at("why_left").get<std::string>();
      } else {
        std::uint64_t& batches = batches_[pid];
        work_.batches -= std::exchange(batches, report->at("batches").get<std::uint64_t>());
        work_.batches += batches;
        if (const std::string run = report->at("run"); !run.empty()) work_.run = run;
      }
    }
  }

  void tell_of_progress() {
    if (!nodes_ || nodes_->progress_seconds <= 0 || told_) return;
    const Instant now = SteadyClock().now();
    if (seconds_of(now - told_at_) < nodes_->progress_seconds) return;
    told_at_ = now;
    send_packet(ended_, {{"progress", work_}}, MSG_DONTWAIT);
  }

  void tell_of_end() {
    if (!nodes_ || std::exchange(told_, true)) return;
    hear();
    json outcome = failure_ ? json_of(*failure_) : json::object();
    outcome["work"] = work_;
    send_packet(ended_, outcome);
  }

  void reap() {
    int state = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &state, WNOHANG)) > 0;) {
      const auto found = children_.find(pid);
      if (found == children_.end()) continue;
      NodeProcess node = found->second;
      children_.erase(found);
      // A node that exits has a reason. One that crashed or was killed is started again.
      if (WIFEXITED(state)) {
        if (WEXITSTATUS(state) != 0)
          failed(pid, static_cast<ErrorKind>(WEXITSTATUS(state) - kFirstErrorCode));
        continue;
      }
      const bool quick = SteadyClock().now() - node.started < std::chrono::seconds(1);
      node.quick_failures = quick ? node.quick_failures + 1 : 0;
      if (node.quick_failures < kQuickFailuresMax) {
        start(node);
      } else {
        failed(pid, ErrorKind::system);
      }
    }
    if (children_.empty()) tell_of_end();
  }

  void failed(pid_t pid, ErrorKind kind) {
    hear();
    const auto reason = reasons_.find(pid);
    failure_ = reason != reasons_.end()
                   ? reason->second
                   : Error{kind, "a node crashed again and again, within a second each time"};
  }

  [[noreturn]] void end() {
    for (const auto& [pid, child] : children_) kill(pid, SIGTERM);
    while (wait(nullptr) > 0) {
    }
    tell_of_end();
    _exit(0);
  }

  int socket_;
  int ended_;
  EngineHost::Options options_;
  const EngineLibrary* library_ = nullptr;
  std::optional<EngineHost::Nodes> nodes_;
  std::map<pid_t, NodeProcess> children_;
  int reports_[2] = {-1, -1};               // nodes write of themselves to the second
  std::map<pid_t, std::uint64_t> batches_;  // of each node that there ever was
  std::map<pid_t, Error> reasons_;          // of nodes that ended with an error
  EngineHost::Work work_;
  std::optional<Error> failure_;  // of the node that failed last
  Instant told_at_;               // of progress
  bool told_ = false;             // that every node has ended
};

}  // namespace

Result<EngineHost> EngineHost::start(const Options& options) {
  int requests[2], ended[2];
  for (int* pair : {requests, ended}) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
      return system_error("making a socket pair", errno);
  }
  const pid_t pid = fork();
  if (pid < 0) return system_error("starting a process", errno);
  if (pid == 0) {
    close(requests[0]);
    close(ended[0]);
    HostProcess(requests[1], ended[1], options).run();
  }
  close(requests[1]);
  close(ended[1]);
  return EngineHost(pid, requests[0], ended[0]);
}

EngineHost::EngineHost(EngineHost&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(other.socket_),
      ended_(other.ended_),
      has_nodes_(other.has_nodes_) {}

EngineHost::~EngineHost() {
  if (pid_ < 0) return;
  if (!has_nodes_) kill(pid_, SIGTERM);  // it may still be loading the engine
  close(socket_);
  close(ended_);
  waitpid(pid_, nullptr, 0);
}

Status EngineHost::initialise(const NewRun& run) {
  W5XDE_CHECK(ask(socket_, {{"do", "initialise"}, {"run", run}}));
  return {};
}

Result<std::vector<BatchTrial>> EngineHost::try_batches(const ModelOptions& model,
                                                        const std::filesystem::path& model_file,
                                                        std::uint64_t seed, const std::string& data,
                                                        const std::vector<std::uint32_t>& sizes) {
  W5XDE_TRY(const json answer, ask(socket_, {{"do", "try batches"},
                                             {"model", model},
                                             {"model_file", model_file.string()},
                                             {"seed", seed},
                                             {"data", data},
                                             {"sizes", sizes}}));
  std::vector<BatchTrial> trials;
  for (const json& rate : answer.at("rates")) trials.push_back({rate.at(0), rate.at(1)});
  return trials;
}

Status EngineHost::start_nodes(const Nodes& nodes) {
  has_nodes_ = true;
  W5XDE_CHECK(ask(socket_, {{"do", "nodes"}, {"nodes", nodes}}));
  return {};
}

std::vector<pid_t> EngineHost::processes() const {
  const auto answer = ask(socket_, {{"do", "processes"}});
  if (!answer.ok()) return {};
  return answer->at("pids").get<std::vector<pid_t>>();
}

std::optional<Error> EngineHost::all_ended() const {
  pollfd waiting{ended_, POLLIN, 0};
  if (poll(&waiting, 1, 0) <= 0) return std::nullopt;
  const auto outcome = receive(ended_);
  if (!outcome) return Error{ErrorKind::system, "the process that starts nodes died"};
  return error_in(*outcome).value_or(disconnected("every node has left"));
}

namespace {

Result<EngineHost::Work> outcome_in(const std::optional<json>& packet) {
  if (!packet) return Error{ErrorKind::system, "the process that starts nodes died"};
  if (auto error = error_in(*packet)) return std::move(*error);
  return packet->at("work").get<EngineHost::Work>();
}

}  // namespace

Result<std::optional<EngineHost::Work>> EngineHost::wait(
    int interrupt, const std::function<void(const Work&)>& on_progress) const {
  while (true) {
    pollfd events[] = {{ended_, POLLIN, 0}, {interrupt, POLLIN, 0}};
    while (poll(events, 2, -1) < 0 && errno == EINTR) {
    }
    if (events[1].revents != 0) return std::optional<Work>();
    const auto packet = receive(ended_);
    if (packet && packet->contains("progress")) {
      on_progress(packet->at("progress").get<Work>());
      continue;
    }
    W5XDE_TRY(Work work, outcome_in(packet));
    return std::optional<Work>(std::move(work));
  }
}

Result<EngineHost::Work> EngineHost::leave() {
  shutdown(socket_, SHUT_WR);
  while (true) {
    const auto packet = receive(ended_);
    if (!packet || !packet->contains("progress")) return outcome_in(packet);
  }
}

}  // namespace w5xde
