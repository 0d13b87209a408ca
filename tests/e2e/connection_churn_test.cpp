// 10,000 connections opened and dropped, 1,000 of them malformed: nothing leaks, nothing grows, the server
// serves on.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/random.h"
#include "support/echo_server.h"
#include "support/frames.h"

namespace w5xde {
namespace {

constexpr std::uint64_t kSeed = 20240817;
constexpr int kConnections = 10'000;
constexpr int kMalformedEvery = 10;

// Less than a hundred bytes a connection: the allocator's own wobble, not a leak of any of our objects.
constexpr std::size_t kGrowthKibMax = 1024;

// Sanitizers keep freed memory on purpose, to catch its use, so resident memory says nothing there; asan's
// leak check at exit takes this one's place.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kResidentMemoryTells = false;
#else
constexpr bool kResidentMemoryTells = true;
#endif

class Client {
 public:
  explicit Client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
    // Leave with a reset: ten thousand ports in TIME_WAIT would outlast the test.
    const linger none{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &none, sizeof none);
  }
  ~Client() { ::close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void send(Bytes bytes) { (void)!::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // Everything until `size` bytes have come or the server closed.
  std::size_t receive(std::size_t size) {
    std::vector<std::byte> buffer(size);
    std::size_t total = 0;
    while (total < size) {
      const ssize_t count = ::recv(fd_, buffer.data() + total, size - total, 0);
      if (count <= 0) break;
      total += static_cast<std::size_t>(count);
    }
    return total;
  }
  // True once the server has closed.
  void wait_for_close() {
    std::array<std::byte, 4096> ignored{};
    while (::recv(fd_, ignored.data(), ignored.size(), 0) > 0) {
    }
  }

 private:
  int fd_;
  bool connected_ = false;
};

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                                                std::filesystem::directory_iterator()));
}

std::size_t resident_kib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    if (word == "VmRSS:") {
      std::size_t kib = 0;
      status >> kib;
      return kib;
    }
  }
  return 0;
}

// One of the ways to be wrong, from a valid frame.
std::vector<std::byte> malformed(std::uint64_t which, Random& random) {
  std::vector<std::byte> bytes = hello_frame();
  switch (which % 6) {
    case 0:
      bytes[random.below(4)] ^= std::byte{0xff};
      break;  // magic
    case 1:
      bytes[8 + random.below(12)] ^= std::byte{0x80};
      break;  // lengths
    case 2:
      bytes[24 + random.below(bytes.size() - 24)] ^= std::byte{1};
      break;  // head or checksum
    case 3:
      for (auto& byte : bytes) byte = static_cast<std::byte>(random.next());
      break;
    case 4: {  // a head larger than a stranger may send, rightly checksummed
      const std::vector<std::byte> large(100'000);
      bytes = bytes_of_frame({.type = FrameType::hello, .head = large});
      break;
    }
    default:
      bytes.insert(bytes.end(), 64, static_cast<std::byte>(random.next()));
      break;  // garbage after a good frame
  }
  return bytes;
}

void churn(std::uint16_t port, int connections, Random& random, int& good_exchanges) {
  const std::vector<std::byte> hello = hello_frame();
  for (int i = 0; i < connections; ++i) {
    Client client(port);
    ASSERT_TRUE(client.connected()) << "connection " << i;
    if (i % kMalformedEvery == 0) {
      client.send(malformed(static_cast<std::uint64_t>(i / kMalformedEvery), random));
      client.wait_for_close();
      continue;
    }
    switch (i % 4) {
      case 0:
        break;  // opened and dropped
      case 1:
        client.send(Bytes(hello).first(random.below(hello.size())));
        break;  // cut in the middle
      default:
        client.send(hello);
        ASSERT_EQ(client.receive(hello.size()), hello.size()) << "connection " << i;
        ++good_exchanges;
    }
  }
}

TEST(ConnectionChurnTest, ten_thousand_connections_leave_nothing_behind) {
  RecordProperty("seed", std::to_string(kSeed));
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  AsioLoop loop;
  EchoServer server(loop);
  const std::uint16_t port = server.address().port;
  Random random(kSeed);

  const auto run = [&](int connections) {
    int good_exchanges = 0;
    bool finished = false;
    std::thread clients([&] {
      churn(port, connections, random, good_exchanges);
      loop.post([&] { finished = true; });
    });
    loop.run_until([&] { return finished && server.sessions() == 0; });
    clients.join();
    return good_exchanges;
  };

  run(1000);  // what is allocated once is allocated here
  const std::size_t descriptors = open_descriptors();
  const std::size_t memory_kib = resident_kib();
  const int good_exchanges = run(kConnections);
  EXPECT_EQ(open_descriptors(), descriptors);
  if (kResidentMemoryTells) {
    EXPECT_LT(resident_kib(), memory_kib + kGrowthKibMax) << "from " << memory_kib << " KiB";
  }
  EXPECT_EQ(server.accepted(), 1000u + kConnections);
  EXPECT_EQ(good_exchanges, 4500);
  EXPECT_GE(server.endings().at(ErrorKind::corrupt), 500u);
  EXPECT_GE(server.endings().at(ErrorKind::overloaded), 100u);
  EXPECT_EQ(run(4), 2) << "the server still serves";
}

}  // namespace
}  // namespace w5xde
