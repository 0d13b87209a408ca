#include "bench/link_lab.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/file.h"
#include "local_pool/scratch.h"
#include "net/link.h"

namespace w5xde {

namespace {

const Address kCoordinator{"10.77.0.1", 5555};
constexpr const char* kNodes = "10.77.0.2";

Status run(const Words& command) {
  const Scratch scratch("link");
  W5XDE_TRY(Child child, Child::start(command, scratch.path / "output.txt"));
  return wait_for({&child, 1}, {});
}

// Two network namespaces. The destructor removes them, and with them the pair between them.
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

// A port that nobody listens on now. Should somebody take it first, the coordinator says so.
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

Result<LinkLab> LinkLab::open(double bytes_per_second) {
  const std::string limit = fmt::format("{:g} Mbit/s each way, shared by all nodes", bytes_per_second * 8e-6);
  auto namespaces = std::make_shared<Namespaces>();
  const Status made = namespaces->make(bytes_per_second);
  if (made.ok()) {
    return LinkLab{.how = "a veth pair between two network namespaces, tbf at " + limit,
                   .ends = {.listen = kCoordinator,
                            .join = kCoordinator,
                            .at_coordinator = {"ip", "netns", "exec", namespaces->coordinator},
                            .at_nodes = {"ip", "netns", "exec", namespaces->nodes}},
                   .link = namespaces};
  }
  namespaces.reset();
  W5XDE_TRY(const std::uint16_t port, free_port());
  const Address listen{"127.0.0.1", port};
  auto relay = std::make_shared<Relay>();
  W5XDE_CHECK(relay->start(listen, bytes_per_second));
  return LinkLab{.how = fmt::format("a relay on loopback at {} ({})", limit, made.error().message),
                 .ends = {.listen = listen, .join = relay->address(), .at_coordinator = {}, .at_nodes = {}},
                 .link = relay};
}

}  // namespace w5xde
