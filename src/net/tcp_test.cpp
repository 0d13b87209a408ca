#include "net/tcp.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "net/asio_loop.h"
#include "support/kernel_buffers.h"

namespace w5xde {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(AddressTest, addresses_are_read_and_written) {
  EXPECT_EQ(parse_address("10.0.0.1:5555")->to_string(), "10.0.0.1:5555");
  EXPECT_EQ(parse_address("[::1]:80")->host, "::1");
  EXPECT_EQ(parse_address("[::1]:80")->to_string(), "[::1]:80");
  EXPECT_EQ(parse_address("coordinator.example:0")->port, 0);
  for (const char* bad : {"", "host", "host:", ":80", "host:99999", "host:8o", "::1:80", "host:-1"}) {
    const auto address = parse_address(bad);
    ASSERT_FALSE(address.ok()) << bad;
    EXPECT_NE(address.error().message.find("HOST:PORT"), std::string::npos);
  }
}

TEST(AddressTest, this_machine_s_own_addresses_are_known_by_their_form) {
  for (const char* own :
       {"127.0.0.1", "127.3.2.1", "127.0.0.1:5555", "localhost", "localhost:1", "::1", "[::1]:5555"})
    EXPECT_TRUE(is_loopback(own)) << own;
  for (const char* other : {"10.0.0.1", "0.0.0.0", "::", "127.example.org", "127.0.0.1.example.org:80",
                            "localhost.example.org", "[::1:2]:80", "desk"})
    EXPECT_FALSE(is_loopback(other)) << other;
}

// A listener with one connected pair.
class TcpTest : public testing::Test {
 protected:
  void connect(const SocketOptions& options) {
    listener_ = listen_tcp(loop_, {"127.0.0.1", 0}, options, [this](std::unique_ptr<Stream> stream) {
                  far_ = std::move(stream);
                }).value();
    connect_tcp(loop_, {.address = listener_->address(), .socket = options, .on_retry = {}}, random_,
                [this](Result<std::unique_ptr<Stream>> stream) { near_ = std::move(stream).value(); });
    loop_.run_until([this] { return near_ && far_; });
  }

  AsioLoop loop_;
  Random random_{1};
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Stream> near_, far_;
};

TEST_F(TcpTest, what_the_kernel_granted_is_read_back) {
  connect({.send_buffer_bytes = 1 << 20, .receive_buffer_bytes = 1 << 19});
  for (const Stream* stream : {near_.get(), far_.get()}) {
    const auto report = stream->tcp_report();
    ASSERT_TRUE(report.has_value());
    EXPECT_TRUE(report->no_delay);
    EXPECT_TRUE(report->keep_alive);
    // The kernel doubles it for its own bookkeeping. Whoever may not pass its limits gets what they allow.
    EXPECT_LE(report->send_buffer_bytes, 2u << 20);
    EXPECT_GE(report->send_buffer_bytes, granted_to_anyone(1 << 20).send);
    EXPECT_LE(report->receive_buffer_bytes, 1u << 20);
    EXPECT_GE(report->receive_buffer_bytes, granted_to_anyone(1 << 19).receive);
  }
}

TEST_F(TcpTest, what_was_not_asked_for_is_off_and_buffers_are_the_kernel_s) {
  connect({.no_delay = false, .quick_ack = false, .keep_alive = false});
  const auto report = near_->tcp_report();
  EXPECT_FALSE(report->no_delay);
  EXPECT_FALSE(report->keep_alive);
  EXPECT_FALSE(report->quick_ack);
  EXPECT_GT(report->send_buffer_bytes, 0u);
}

TEST_F(TcpTest, nothing_is_paced_on_the_machine_itself) {
  connect({});
  EXPECT_EQ(near_->tcp_report()->congestion_control, "reno");
  EXPECT_EQ(far_->tcp_report()->congestion_control, "reno");
}

TEST_F(TcpTest, nothing_is_fitted_on_the_machine_itself) {
  connect({});
  const TcpReport before = near_->tcp_report().value();
  near_->fit({1e9, true, 1e9, seconds(1)});
  const TcpReport after = near_->tcp_report().value();
  EXPECT_EQ(after.send_buffer_bytes, before.send_buffer_bytes);
  EXPECT_EQ(after.receive_buffer_bytes, before.receive_buffer_bytes);
}

TEST_F(TcpTest, the_kernel_s_measurements_are_there) {
  connect({});
  const std::string text(1000, 'x');
  const iovec part{const_cast<char*>(text.data()), text.size()};
  ASSERT_EQ(near_->write({&part, 1}).value(), 1000u);
  loop_.run_until([&] { return near_->tcp_report()->bytes_acknowledged >= 1000; });
  EXPECT_GT(near_->tcp_report()->round_trip_min, Duration::zero());
  EXPECT_FALSE(near_->encrypted());
}

TEST_F(TcpTest, a_port_in_use_is_a_clear_error) {
  connect({});
  const auto second = listen_tcp(loop_, listener_->address(), {}, [](std::unique_ptr<Stream>) {});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::system);
  EXPECT_NE(second.error().message.find(listener_->address().to_string()), std::string::npos);
  EXPECT_NE(second.error().message.find("in use"), std::string::npos);
}

TEST_F(TcpTest, connections_that_come_when_few_descriptors_are_left_are_closed_so_that_files_can_be_opened) {
  std::vector<std::unique_ptr<Stream>> accepted, clients;
  listener_ = listen_tcp(loop_, {"127.0.0.1", 0}, {}, [&](std::unique_ptr<Stream> stream) {
                accepted.push_back(std::move(stream));
              }).value();
  const int lowest_free = open("/dev/null", O_RDONLY);
  ASSERT_EQ(close(lowest_free), 0);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{static_cast<rlim_t>(lowest_free) + 24, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  // Each takes two descriptors, one at either end.
  bool refused = false;
  for (std::size_t i = 1; i <= 12 && !refused; ++i) {
    connect_tcp(loop_, {.address = listener_->address(), .on_retry = {}}, random_,
                [&](Result<std::unique_ptr<Stream>> stream) {
                  clients.push_back(std::move(stream).value());
                  clients.back()->when_readable([&] { refused = true; });
                });
    loop_.run_until([&] { return clients.size() == i && (accepted.size() == i || refused); });
  }
  EXPECT_TRUE(refused);
  EXPECT_GT(accepted.size(), 0u);
  EXPECT_EQ(clients.size(), accepted.size() + 1);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST_F(TcpTest, connecting_retries_and_then_says_what_it_tried) {
  // A port that nobody listens on: taken, and given back.
  Address address;
  {
    const auto listener = listen_tcp(loop_, {"127.0.0.1", 0}, {}, [](std::unique_ptr<Stream>) {});
    address = (*listener)->address();
  }
  std::vector<unsigned> retries;
  std::optional<Error> error;
  connect_tcp(loop_,
              {.address = address,
               .socket = {},
               .attempts_max = 3,
               .delay_first = milliseconds(1),
               .on_retry = [&](unsigned attempt, const Error&, Duration) { retries.push_back(attempt); }},
              random_, [&](Result<std::unique_ptr<Stream>> stream) { error = stream.error(); });
  loop_.run_until([&] { return error.has_value(); });
  EXPECT_EQ(retries, (std::vector<unsigned>{1, 2}));
  EXPECT_EQ(error->kind, ErrorKind::disconnected);
  EXPECT_NE(error->message.find(address.to_string()), std::string::npos);
}

TEST_F(TcpTest, a_coordinator_that_comes_up_late_is_found) {
  Address address;
  {
    const auto listener = listen_tcp(loop_, {"127.0.0.1", 0}, {}, [](std::unique_ptr<Stream>) {});
    address = (*listener)->address();
  }
  std::unique_ptr<Listener> late;
  std::unique_ptr<Stream> connected;
  connect_tcp(loop_,
              {.address = address,
               .socket = {},
               .attempts_max = 100,
               .delay_first = milliseconds(1),
               .delay_max = milliseconds(4),
               .on_retry =
                   [&](unsigned attempt, const Error&, Duration) {
                     if (attempt != 3) return;
                     late = listen_tcp(loop_, address, {}, [](std::unique_ptr<Stream>) {}).value();
                   }},
              random_,
              [&](Result<std::unique_ptr<Stream>> stream) { connected = std::move(stream).value(); });
  loop_.run_until([&] { return connected != nullptr; });
}

TEST(RetryDelayTest, delays_double_to_a_maximum_and_vary) {
  const ConnectOptions options{
      .address = {}, .socket = {}, .delay_first = milliseconds(100), .delay_max = seconds(1), .on_retry = {}};
  Random random(5);
  for (unsigned attempt = 1; attempt < 40; ++attempt) {
    const Duration full =
        std::min<Duration>(seconds(1), milliseconds(100) * (1 << std::min(attempt - 1, 10u)));
    const Duration delay = retry_delay(options, attempt, random);
    EXPECT_LE(delay, full);
    EXPECT_GE(delay, full / 2);
  }
  EXPECT_NE(retry_delay(options, 3, random), retry_delay(options, 3, random));
}

}  // namespace
}  // namespace w5xde
