#include "bench/link_lab.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "net/link.h"

namespace w5xde {

namespace {

const Address kCoordinator{"10.77.0.1", 5555};
constexpr const char* kNodes = "10.77.0.2";

std::string limit_text(double bytes_per_second) {
  return fmt::format("{:g} Mbit/s each way, shared by all nodes", bytes_per_second * 8e-6);
}

Status run(const Words& command) {
  const auto output = std::filesystem::temp_directory_path() / fmt::format("w5xde-link-{}.txt", getpid());
  W5XDE_TRY(Child child, Child::start(command, output));
  Status status = wait_for({&child, 1}, {});
  std::error_code ignored;
  std::filesystem::remove(output, ignored);
  return status;
}

// Two network namespaces; they and the pair between them go with this.
class Namespaces {
 public:
  Namespaces() = default;
  ~Namespaces() {
    for (const std::string& name : made_) (void)run({"ip", "netns", "del", name});
  }
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  Status make(double bytes_per_second) {
    if (geteuid() != 0) return invalid("namespaces take root");
    for (const std::string& name : {coordinator, nodes}) {
      W5XDE_CHECK(run({"ip", "netns", "add", name}));
      made_.push_back(name);
    }
    W5XDE_CHECK(run({"ip", "link", "add", "w5xde0", "netns", coordinator, "type", "veth", "peer", "name",
                     "w5xde1", "netns", nodes}));
    W5XDE_CHECK(shape(coordinator, "w5xde0", kCoordinator.host, bytes_per_second));
    return shape(nodes, "w5xde1", kNodes, bytes_per_second);
  }

  const std::string coordinator = fmt::format("w5xde-{}-coordinator", getpid());
  const std::string nodes = fmt::format("w5xde-{}-nodes", getpid());

 private:
  static Status shape(const std::string& name, const std::string& device, const std::string& address,
                      double bytes_per_second) {
    W5XDE_CHECK(run({"ip", "-n", name, "address", "add", address + "/24", "dev", device}));
    W5XDE_CHECK(run({"ip", "-n", name, "link", "set", device, "up"}));
    // A burst of several of the largest packets that the kernel makes, or the rate is not reached.
    const double burst = std::max(131072.0, bytes_per_second * 0.004);
    return run({"tc", "-n", name, "qdisc", "add", "dev", device, "root", "tbf", "rate",
                fmt::format("{:.0f}bit", bytes_per_second * 8), "burst", fmt::format("{:.0f}", burst),
                "latency", "50ms"});
  }

  std::vector<std::string> made_;
};

class NamespaceLab final : public LinkLab {
 public:
  NamespaceLab(std::unique_ptr<Namespaces> namespaces, double bytes_per_second)
      : LinkLab("a veth pair between two network namespaces, tbf at " + limit_text(bytes_per_second),
                kCoordinator, kCoordinator),
        namespaces_(std::move(namespaces)) {}

 private:
  Words at_coordinator() const override { return {"ip", "netns", "exec", namespaces_->coordinator}; }
  Words at_nodes() const override { return {"ip", "netns", "exec", namespaces_->nodes}; }

  std::unique_ptr<Namespaces> namespaces_;
};

// A Link with a thread of its own.
class Relay {
 public:
  ~Relay() {
    loop_.post([this] { loop_.stop(); });  // not at once: the thread may be about to begin
    if (thread_.joinable()) thread_.join();
  }
  Status start(const Address& target, double bytes_per_second) {
    W5XDE_TRY(link_, Link::start(loop_, target, {.bytes_per_second = bytes_per_second, .shared = true}, 1));
    thread_ = std::thread([this] { loop_.run(); });
    return {};
  }
  const Address& address() const { return link_->address(); }

 private:
  AsioLoop loop_;
  std::unique_ptr<Link> link_;
  std::thread thread_;
};

class RelayLab final : public LinkLab {
 public:
  RelayLab(std::unique_ptr<Relay> relay, Address listen, double bytes_per_second, const std::string& why)
      : LinkLab(fmt::format("a relay on loopback at {} ({})", limit_text(bytes_per_second), why),
                std::move(listen), relay->address()),
        relay_(std::move(relay)) {}

 private:
  std::unique_ptr<Relay> relay_;
};

// One that nobody listens on now. The coordinator says so should somebody be faster.
Result<std::uint16_t> free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* general = reinterpret_cast<sockaddr*>(&address);
  const bool found = bind(probe, general, size) == 0 && getsockname(probe, general, &size) == 0;
  const int error = errno;
  close(probe);
  if (!found) return system_error("finding a free port", error);
  return ntohs(address.sin_port);
}

}  // namespace

Result<std::unique_ptr<LinkLab>> LinkLab::open(double bytes_per_second) {
  auto namespaces = std::make_unique<Namespaces>();
  const Status made = namespaces->make(bytes_per_second);
  if (made.ok()) return std::unique_ptr<LinkLab>(new NamespaceLab(std::move(namespaces), bytes_per_second));
  namespaces.reset();
  W5XDE_TRY(const std::uint16_t port, free_port());
  const Address listen{"127.0.0.1", port};
  auto relay = std::make_unique<Relay>();
  W5XDE_CHECK(relay->start(listen, bytes_per_second));
  return std::unique_ptr<LinkLab>(
      new RelayLab(std::move(relay), listen, bytes_per_second, made.error().message));
}

Result<PoolOutcome> LinkLab::run_pool(const PoolRun& pool, const Watch& watch) const {
  W5XDE_TRY(const std::string program, own_program());
  const auto start = [&](Words words, const Words& more) {
    words.push_back(program);
    words.insert(words.end(), more.begin(), more.end());
    return Child::start(words, output_of(pool));
  };
  Words serve = coordinator_words("serve", pool);
  serve.insert(serve.end(),
               {"--listen", listen_.to_string(), "--insecure", "--wait-for", std::to_string(pool.nodes)});
  Words join = {"join", join_.to_string(), "--nodes", std::to_string(pool.nodes), "--name",
                "node", "--log",           "silent"};
  if (!pool.engine.empty()) join.insert(join.end(), {"--engine", pool.engine});
  std::vector<Child> children;
  W5XDE_TRY(Child coordinator, start(at_coordinator(), serve));
  children.push_back(std::move(coordinator));
  W5XDE_TRY(Child nodes, start(at_nodes(), join));
  children.push_back(std::move(nodes));
  return outcome_of(pool, children, watch);
}

}  // namespace w5xde
