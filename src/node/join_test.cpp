#include "node/join.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "support/fake_engine.h"
#include "support/hand_peer.h"

namespace w5xde {
namespace {

// A coordinator that is played by hand, and a node that joins it from a thread of its own.
class JoinTest : public testing::Test {
 protected:
  JoinTest() {
    listener_ = TcpListener::listen(loop_, {"127.0.0.1", 0}, {}, [this](std::unique_ptr<Stream> stream) {
                  ++visits_;
                  visit(std::move(stream));
                }).value();
  }

  Status join_until_it_gives_up() {
    Status result;
    bool over = false;
    std::thread node([&] {
      JoinOptions options{.address = listener_->address(), .node = {.name = "n"}, .attempts_max = 1};
      options.node.make_engine = [](const ModelOptions&, const std::filesystem::path&) {
        return std::unique_ptr<Engine>(std::make_unique<FakeEngine>());
      };
      result = join(options, Log(LogTier::silent));
      loop_.post([&] { over = true; });
    });
    loop_.run_until([&] { return over; });
    node.join();
    return result;
  }

  std::function<void(std::unique_ptr<Stream>)> visit;
  AsioLoop loop_;
  std::unique_ptr<TcpListener> listener_;
  unsigned visits_ = 0;
  std::vector<std::unique_ptr<HandPeer>> peers_;
};

TEST_F(JoinTest, a_corrupt_byte_costs_a_stay_and_not_the_node) {
  visit = [this](std::unique_ptr<Stream> stream) {
    peers_.push_back(std::make_unique<HandPeer>(std::move(stream)));
    Error reason = corrupt("a checksum that does not fit");
    if (visits_ == 3) reason = disconnected("the run is finished");
    peers_.back()->connection().close(std::move(reason));
  };
  const Status result = join_until_it_gives_up();
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(visits_, 3u);
}

TEST_F(JoinTest, a_link_that_is_corrupt_every_time_is_given_up) {
  visit = [this](std::unique_ptr<Stream> stream) {
    peers_.push_back(std::make_unique<HandPeer>(std::move(stream)));
    peers_.back()->connection().close(corrupt("a checksum that does not fit"));
  };
  const Status result = join_until_it_gives_up();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::corrupt);
  EXPECT_EQ(visits_, 5u);
}

}  // namespace
}  // namespace w5xde
