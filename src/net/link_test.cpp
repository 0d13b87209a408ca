#include "net/link.h"

#include <gtest/gtest.h>

#include <vector>

#include "net/connection.h"
#include "support/echo_server.h"

namespace w5xde {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A client that reaches an echo server through a link and counts what comes back.
class LinkTest : public testing::Test, public Connection::Owner {
 protected:
  void connect(const LinkShape& shape) {
    link_ = Link::start(loop_, server_.address(), shape, 7).value();
    reconnect();
  }
  void reconnect() {
    why_.reset();
    greeted_ = false;
    connection_.reset();
    ConnectOptions options;
    options.address = link_->address();
    connect_tcp(loop_, options, random_, [this](Result<std::unique_ptr<Stream>> stream) {
      connection_ = Connection::start(std::move(stream).value(), *this, {});
      const auto hello = hello_frame();
      ASSERT_TRUE(connection_->send({.type = FrameType::hello, .head = head_of(hello)}).ok());
    });
    run_until([this] { return greeted_ || why_; });
  }
  void TearDown() override {
    if (connection_) connection_->detach();
  }

  static Bytes head_of(const std::vector<std::byte>& frame) {
    return Bytes(frame).subspan(kFrameHeaderBytes, frame.size() - kFrameHeaderBytes - kFrameChecksumBytes);
  }

  void send(std::size_t bytes) {
    outgoing_.assign(bytes, std::byte{7});
    const TensorView view = TensorView::of_bytes(outgoing_);
    ASSERT_TRUE(connection_->send({.type = FrameType::tensors, .payload = {&view, 1}}).ok());
  }

  bool run_until(const std::function<bool()>& condition) {
    bool late = false;
    const auto timer = loop_.after(seconds(60), [&] { late = true; });
    loop_.run_until([&] { return late || condition(); });
    loop_.cancel(timer);
    return !late;
  }

  Result<MutableBytes> place(const FrameHeader& header, Bytes) override {
    landing_.resize(header.payload_bytes);
    return MutableBytes(landing_);
  }
  Status received(const FrameHeader& header, Bytes, MutableBytes) override {
    if (header.type == FrameType::hello) greeted_ = true;
    if (header.type == FrameType::tensors) ++echoes_;
    return {};
  }
  void closed(const Error& reason) override { why_ = reason; }

  AsioLoop loop_;
  Random random_{1};
  EchoServer server_{loop_};
  std::unique_ptr<Link> link_;
  std::shared_ptr<Connection> connection_;
  std::vector<std::byte> outgoing_, landing_;
  bool greeted_ = false;
  int echoes_ = 0;
  std::optional<Error> why_;
};

TEST_F(LinkTest, a_perfect_link_changes_nothing) {
  connect({});
  send(3'000'000);
  ASSERT_TRUE(run_until([&] { return echoes_ == 1; }));
  EXPECT_EQ(landing_, outgoing_);
  EXPECT_EQ(link_->connections(), 1u);
}

TEST_F(LinkTest, delay_is_added_each_way) {
  connect({.delay = milliseconds(30)});
  const Instant start = loop_.now();
  send(10);
  ASSERT_TRUE(run_until([&] { return echoes_ == 1; }));
  EXPECT_GE(loop_.now() - start, milliseconds(60));
}

TEST_F(LinkTest, the_rate_is_limited_each_way) {
  connect({.bytes_per_second = 10e6});
  const Instant start = loop_.now();
  send(2'000'000);
  ASSERT_TRUE(run_until([&] { return echoes_ == 1; }));
  // The echo waits for the last byte, so the two ways add up.
  EXPECT_GE(loop_.now() - start, milliseconds(400));
}

// Bytes go to the server until enough of them have left the link's other end.
class SharedLinkTest : public testing::Test {
 protected:
  // How long two connections take to carry `bytes` each, one way.
  double seconds_for(const LinkShape& shape, std::size_t bytes) {
    std::vector<std::unique_ptr<Stream>> sinks, sources;
    std::size_t arrived = 0;
    const auto listener = listen_tcp(loop_, {"127.0.0.1", 0}, {}, [&](std::unique_ptr<Stream> stream) {
                            sinks.push_back(std::move(stream));
                            drain(*sinks.back(), arrived);
                          }).value();
    const auto link = Link::start(loop_, listener->address(), shape, 7).value();
    const Instant begun = loop_.now();
    const std::vector<std::byte> load(bytes);
    for (int i = 0; i < 2; ++i) {
      connect_tcp(loop_, {.address = link->address()}, random_, [&](Result<std::unique_ptr<Stream>> stream) {
        sources.push_back(std::move(stream).value());
        pour(*sources.back(), load);
      });
    }
    loop_.run_until([&] { return arrived == 2 * bytes; });
    return seconds_of(loop_.now() - begun);
  }

 private:
  static void pour(Stream& stream, Bytes load) {
    const iovec part{const_cast<std::byte*>(load.data()), load.size()};
    const std::size_t count = load.empty() ? 0 : stream.write({&part, 1}).value();
    if (load.size() > count)
      stream.when_writable([&stream, rest = load.subspan(count)] { pour(stream, rest); });
  }
  static void drain(Stream& stream, std::size_t& arrived) {
    std::vector<std::byte> landing(65536);
    const iovec part{landing.data(), landing.size()};
    const auto count = stream.read({&part, 1});
    if (!count) return;
    arrived += *count;
    stream.when_readable([&stream, &arrived] { drain(stream, arrived); });
  }

  AsioLoop loop_;
  Random random_{1};
};

TEST_F(SharedLinkTest, two_connections_have_the_rate_each_unless_they_share_it) {
  EXPECT_GE(seconds_for({.bytes_per_second = 5e6}, 1'000'000), 0.19);
  EXPECT_GE(seconds_for({.bytes_per_second = 5e6, .shared = true}, 1'000'000), 0.39);
}

TEST_F(LinkTest, a_connection_knows_when_all_that_it_sent_has_arrived) {
  connect({.bytes_per_second = 5e6});
  ASSERT_TRUE(run_until([&] { return connection_->all_arrived(); }));
  send(1'000'000);
  EXPECT_FALSE(connection_->all_arrived());
  ASSERT_TRUE(run_until([&] { return echoes_ == 1; }));
  EXPECT_TRUE(run_until([&] { return connection_->all_arrived(); }));
}

TEST_F(LinkTest, a_stall_holds_everything_up_and_ends) {
  connect({.stall_every = milliseconds(5), .stall_for = milliseconds(20)});
  for (int i = 1; i <= 20; ++i) {
    send(100);
    ASSERT_TRUE(run_until([&] { return echoes_ == i; }));
  }
}

TEST_F(LinkTest, a_partition_stops_the_flow_and_its_end_lets_it_go_on) {
  connect({});
  link_->set_partitioned(true);
  send(100);
  bool waited = false;
  loop_.after(milliseconds(50), [&] { waited = true; });
  ASSERT_TRUE(run_until([&] { return waited; }));
  EXPECT_EQ(echoes_, 0);
  link_->set_partitioned(false);
  EXPECT_TRUE(run_until([&] { return echoes_ == 1; }));
}

TEST_F(LinkTest, a_long_partition_is_noticed_by_both_sides) {
  connect({});
  ASSERT_TRUE(run_until([&] { return connection_->link().round_trip != Duration::zero(); }));
  link_->set_partitioned(true);
  ASSERT_TRUE(run_until([&] { return why_ && server_.sessions() == 0; }));
  EXPECT_EQ(why_->kind, ErrorKind::disconnected);
}

TEST_F(LinkTest, a_cut_ends_the_connection_on_both_sides_and_a_new_one_works) {
  connect({});
  link_->cut_all();
  ASSERT_TRUE(run_until([&] { return why_ && server_.sessions() == 0; }));
  EXPECT_EQ(link_->connections(), 0u);
  reconnect();
  send(10);
  EXPECT_TRUE(run_until([&] { return echoes_ == 1; }));
}

TEST_F(LinkTest, a_cut_after_so_many_bytes_comes_in_the_middle_of_a_frame) {
  connect({.cut_after_bytes = 100'000});
  send(1'000'000);
  ASSERT_TRUE(run_until([&] { return why_.has_value(); }));
  EXPECT_EQ(echoes_, 0);
}

TEST_F(LinkTest, a_flipped_bit_is_noticed_and_closes_that_connection_only) {
  connect({});
  link_->set_shape({.flip_every_bytes = 50'000});
  send(1'000'000);
  ASSERT_TRUE(run_until([&] { return why_.has_value(); }));
  EXPECT_GT(link_->bits_flipped(), 0u);
  EXPECT_EQ(echoes_, 0);
  link_->set_shape({});
  ASSERT_TRUE(run_until([&] { return server_.sessions() == 0; }));
  reconnect();
  send(10);
  EXPECT_TRUE(run_until([&] { return echoes_ == 1; })) << "the server serves others";
}

TEST_F(LinkTest, a_large_frame_on_a_slow_link_is_not_taken_for_a_dead_peer) {
  // Several seconds of bytes lie in socket buffers ahead of every heartbeat, longer than a fast link's
  // patience.
  connect({.bytes_per_second = 1.5e6});
  ASSERT_TRUE(run_until([&] { return connection_->link().round_trip != Duration::zero(); }));
  send(6'000'000);
  ASSERT_TRUE(run_until([&] { return echoes_ == 1 || why_; }));
  EXPECT_FALSE(why_) << why_->message;
}

}  // namespace
}  // namespace w5xde
