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

#include "base/file.h"
#include "base/random.h"
#include "commands/batch_choice.h"
#include "node/join.h"
#include "node/machine.h"
#include "record/checkpoint.h"

namespace w5xde {

namespace {

using nlohmann::json;

// Requests and answers are one packet each.
constexpr std::size_t kPacketBytesMax = 64 * 1024;
// A node that fails this often in a row, each time within a second, is not started again.
constexpr unsigned kQuickFailuresMax = 3;

json json_of(const Error& error) {
  return {{"error", error.message}, {"kind", static_cast<int>(error.kind)}};
}

json json_of(const ModelOptions& model) {
  const auto dims = model.sample_shape.dims();
  return {{"model", model.model},
          {"loss", model.loss},
          {"sample_shape", std::vector<std::int64_t>(dims.begin(), dims.end())},
          {"classes", model.classes},
          {"threads", model.threads},
          {"device", model.device}};
}

ModelOptions model_of(const json& map) {
  return {.model = map.at("model"),
          .loss = map.at("loss"),
          .sample_shape = Shape::make(map.at("sample_shape").get<std::vector<std::int64_t>>()).value(),
          .classes = map.at("classes"),
          .threads = map.at("threads"),
          .device = map.at("device")};
}

std::optional<std::string> receive(int socket) {
  std::string packet(kPacketBytesMax, '\0');
  ssize_t count = 0;
  do {
    count = recv(socket, packet.data(), packet.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return std::nullopt;
  packet.resize(static_cast<std::size_t>(count));
  return packet;
}

std::optional<Error> error_in(const std::string& packet) {
  const json map = json::parse(packet, nullptr, false);
  if (!map.contains("error")) return std::nullopt;
  return Error{static_cast<ErrorKind>(map.at("kind").get<int>()), map.at("error")};
}

void send_packet(int socket, const json& map) {
  const std::string packet = map.dump(-1, ' ', false, json::error_handler_t::replace);
  (void)!send(socket, packet.data(), packet.size(), MSG_NOSIGNAL);  // nobody listens: we end soon
}

Result<json> initialise_here(const EngineLibrary& library, const json& request) {
  W5XDE_TRY(const auto engine,
            library.make(model_of(request.at("model")), request.at("model_file").get<std::string>()));
  const ModelDescription& description = engine->description();
  AlignedBuffer memory(description.floats() * sizeof(float));
  const std::span<float> state(reinterpret_cast<float*>(memory.data()), description.floats());
  std::memset(memory.data(), 0, memory.capacity());
  const std::uint64_t seed = request.at("seed");
  W5XDE_CHECK(engine->initialise(mix(seed), state));
  const CheckpointInfo info{.seed = seed,
                            .model = request.at("model").at("model"),
                            .loss = description.loss,
                            .engine = engine->name(),
                            .processor = processor_name(),
                            .model_fingerprint = description.fingerprint()};
  std::vector<NamedBlock> blocks = {
      {"parameters", description.parameters.get(), state.first(description.parameters->floats())}};
  if (description.buffers->floats() > 0) {
    blocks.push_back({"buffers", description.buffers.get(), state.subspan(description.parameters->floats())});
  }
  W5XDE_CHECK(write_checkpoint(request.at("checkpoint").get<std::string>(), info, blocks));
  return json::object();
}

Result<json> try_batches_here(const EngineLibrary& library, const json& request) {
  W5XDE_TRY(const auto engine,
            library.make(model_of(request.at("model")), request.at("model_file").get<std::string>()));
  const std::uint64_t seed = request.at("seed");
  W5XDE_TRY(const auto data, open_dataset(request.at("data").get<std::string>(), Split::train, seed));
  const auto sizes = request.at("sizes").get<std::vector<std::uint32_t>>();
  W5XDE_TRY(const auto trials, try_batches(*engine, *data, seed, sizes));
  json rates = json::array();
  for (const BatchTrial& trial : trials) rates.push_back({trial.batch, trial.samples_per_second});
  return json{{"rates", std::move(rates)}};
}

// What the engine host does in its own process.
class HostProcess {
 public:
  HostProcess(int socket, int news, const EngineHost::Options& options)
      : socket_(socket), news_(news), options_(options) {}

  [[noreturn]] void run() {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    // Ctrl-C goes to the whole terminal; it is the coordinator that decides what it means for its nodes.
    std::signal(SIGINT, SIG_IGN);
    std::signal(SIGTERM, SIG_DFL);
    // With the first request: a coordinator that resumes, and has no nodes of its own, asks for nothing.
    std::optional<Result<EngineLibrary>> loaded;
    while (true) {
      pollfd waiting{socket_, POLLIN, 0};
      const int ready = poll(&waiting, 1, 50);
      reap();
      if (ready <= 0) continue;
      const auto packet = receive(socket_);
      if (!packet) end();
      const json request = json::parse(*packet, nullptr, false);
      if (!loaded) loaded = EngineLibrary::load(options_.engine, options_.threads);
      if (!loaded->ok()) {
        send_packet(socket_, json_of(loaded->error()));
      } else {
        answer(**loaded, request);
      }
    }
  }

 private:
  struct Child {
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
      nodes_ = request;
      for (unsigned number = 1; number <= request.at("count").get<unsigned>(); ++number)
        start({.number = number});
      send_packet(socket_, json::object());
    } else if (what == "processes") {
      json pids = {getpid()};
      for (const auto& [pid, child] : children_) pids.push_back(pid);
      send_packet(socket_, {{"pids", pids}});
    } else if (what == "wait") {
      waiting_ = true;
      tell_if_done();
    }
  }

  // What computes starts threads, and nodes must be forked from a process without.
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
      send_packet(socket_,
                  {{"error", "the process that makes the model died"}, {"kind", int(ErrorKind::system)}});
    }
  }

  void start(Child child) {
    child.started = SteadyClock().now();
    const pid_t pid = fork();
    if (pid == 0) run_node(child.number);
    if (pid > 0) children_[pid] = child;
  }

  [[noreturn]] void run_node(unsigned number) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    close(socket_);
    close(news_);
    const std::string base = nodes_.at("name");
    Machine machine = Machine::here();
    if (const std::uint32_t cores = nodes_.at("cores"); cores > 0)
      machine.cores = std::min(machine.cores, cores);
    JoinOptions join_options{.address = {nodes_.at("host"), nodes_.at("port")},
                             .node = {.name = fmt::format("{}-{}", base, number),
                                      .threads = options_.threads,
                                      .device = nodes_.at("device"),
                                      .machine = machine,
                                      .model_cache = nodes_.at("model_cache").get<std::string>()},
                             .attempts_max = nodes_.at("attempts_max")};
    join_options.node.make_engine = [this](const ModelOptions& model, const std::filesystem::path& file) {
      return library_->make(model, file);
    };
    int code = 0;
    {
      const Log log(options_.log);
      if (const Status status = join(join_options, log); !status.ok()) {
        log.error("{}: {}", join_options.node.name, status.error().message);
        code = 10 + static_cast<int>(status.error().kind);
      }
    }
    _exit(code);
  }

  void reap() {
    int state = 0;
    for (pid_t pid = 0; (pid = waitpid(-1, &state, WNOHANG)) > 0;) {
      const auto found = children_.find(pid);
      if (found == children_.end()) continue;
      Child child = found->second;
      children_.erase(found);
      // One that ended by itself has its reason; one that was killed or crashed has none.
      if (WIFEXITED(state) && WEXITSTATUS(state) == 0) continue;
      if (WIFEXITED(state)) {
        failure_ = WEXITSTATUS(state);
        continue;
      }
      const bool quick = SteadyClock().now() - child.started < std::chrono::seconds(1);
      child.quick_failures = quick ? child.quick_failures + 1 : 0;
      if (nodes_.at("restart").get<bool>() && child.quick_failures < kQuickFailuresMax) {
        start(child);
      } else {
        failure_ = 10 + static_cast<int>(ErrorKind::system);
      }
    }
    tell_if_done();
  }

  void tell_if_done() {
    if (nodes_.is_null() || !children_.empty()) return;
    if (!std::exchange(told_, true))
      send_packet(news_, failure_ != 0 ? failure() : json_of(disconnected("every node has left")));
    if (!std::exchange(waiting_, false)) return;
    send_packet(socket_, failure_ != 0 ? failure() : json::object());
  }

  json failure() const {
    return {{"error", "a node ended with an error; its reason is above"}, {"kind", failure_ - 10}};
  }

  [[noreturn]] void end() {
    for (const auto& [pid, child] : children_) kill(pid, SIGTERM);
    while (wait(nullptr) > 0) {
    }
    _exit(0);
  }

  int socket_;
  int news_;
  EngineHost::Options options_;
  const EngineLibrary* library_ = nullptr;
  json nodes_;
  std::map<pid_t, Child> children_;
  bool waiting_ = false;
  bool told_ = false;  // that every node has ended
  int failure_ = 0;
};

}  // namespace

Result<EngineHost> EngineHost::start(const Options& options) {
  int sockets[2], news[2];
  for (int* pair : {sockets, news}) {
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
      return system_error("making a socket pair", errno);
  }
  const pid_t pid = fork();
  if (pid < 0) return system_error("starting a process", errno);
  if (pid == 0) {
    close(sockets[0]);
    close(news[0]);
    HostProcess(sockets[1], news[1], options).run();
  }
  close(sockets[1]);
  close(news[1]);
  return EngineHost(pid, sockets[0], news[0]);
}

EngineHost::EngineHost(EngineHost&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      socket_(std::exchange(other.socket_, -1)),
      news_(std::exchange(other.news_, -1)) {}

EngineHost::~EngineHost() {
  if (pid_ < 0) return;
  close(socket_);
  close(news_);
  waitpid(pid_, nullptr, 0);
}

Result<std::string> EngineHost::ask(const std::string& request) const {
  W5XDE_CHECK(tell(request));
  return hear();
}

Status EngineHost::tell(const std::string& request) const {
  if (send(socket_, request.data(), request.size(), MSG_NOSIGNAL) < 0)
    return system_error("asking the engine host", errno);
  return {};
}

Result<std::string> EngineHost::hear() const {
  auto answer = receive(socket_);
  if (!answer) return Error{ErrorKind::system, "the process that loads the engine died"};
  if (auto error = error_in(*answer)) return std::move(*error);
  return *answer;
}

std::optional<Error> EngineHost::all_ended() const {
  pollfd waiting{news_, POLLIN, 0};
  if (poll(&waiting, 1, 0) <= 0) return std::nullopt;
  const auto news = receive(news_);
  return news ? error_in(*news) : Error{ErrorKind::system, "the process that starts nodes died"};
}

Status EngineHost::initialise(const ModelOptions& model, const std::filesystem::path& model_file,
                              std::uint64_t seed, const std::filesystem::path& checkpoint) {
  W5XDE_TRY(const std::string ignored, ask(json{{"do", "initialise"},
                                                {"model", json_of(model)},
                                                {"model_file", model_file.string()},
                                                {"seed", seed},
                                                {"checkpoint", checkpoint.string()}}
                                               .dump()));
  return {};
}

Result<std::vector<BatchTrial>> EngineHost::try_batches(const ModelOptions& model,
                                                        const std::filesystem::path& model_file,
                                                        std::uint64_t seed, const std::string& data,
                                                        const std::vector<std::uint32_t>& sizes) {
  W5XDE_TRY(const std::string answer, ask(json{{"do", "try batches"},
                                               {"model", json_of(model)},
                                               {"model_file", model_file.string()},
                                               {"seed", seed},
                                               {"data", data},
                                               {"sizes", sizes}}
                                              .dump()));
  std::vector<BatchTrial> trials;
  const json map = json::parse(answer);
  for (const json& rate : map.at("rates")) trials.push_back({rate.at(0), rate.at(1)});
  return trials;
}

Status EngineHost::start_nodes(const Nodes& nodes) {
  W5XDE_TRY(const std::string ignored, ask(json{{"do", "nodes"},
                                                {"count", nodes.count},
                                                {"host", nodes.address.host},
                                                {"port", nodes.address.port},
                                                {"name", nodes.name},
                                                {"device", nodes.device},
                                                {"cores", nodes.cores},
                                                {"model_cache", nodes.model_cache.string()},
                                                {"attempts_max", nodes.attempts_max},
                                                {"restart", nodes.restart}}
                                               .dump()));
  return {};
}

std::vector<pid_t> EngineHost::processes() const {
  const auto answer = ask(json{{"do", "processes"}}.dump());
  if (!answer.ok()) return {};
  return json::parse(*answer).at("pids").get<std::vector<pid_t>>();
}

Status EngineHost::wait(int interrupt) {
  W5XDE_CHECK(tell(json{{"do", "wait"}}.dump()));
  pollfd events[] = {{socket_, POLLIN, 0}, {interrupt, POLLIN, 0}};
  while (poll(events, 2, -1) < 0 && errno == EINTR) {
  }
  if (events[1].revents != 0) return {};
  W5XDE_TRY(const std::string ignored, hear());
  return {};
}

std::filesystem::path default_model_cache() {
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home == nullptr ? "/tmp" : std::string(home) + "/.cache") / "w5xde/models";
}

Result<std::filesystem::path> find_engine(const std::string& asked_for) {
  if (!asked_for.empty()) return std::filesystem::path(asked_for);
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const std::filesystem::path places[] = {here / "engines/torch/libw5xde_torch.so",
                                          here / "../lib/w5xde/libw5xde_torch.so"};
  for (const auto& place : places) {
    if (std::filesystem::exists(place, error)) return place;
  }
  return invalid(fmt::format("no engine at {}; build it (scripts/build), or say where it is with --engine",
                             places[0].string()));
}

}  // namespace w5xde
