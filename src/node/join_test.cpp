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
    listen();
    address_ = listener_->address();
  }
  void listen() {
    listener_ = listen_tcp(loop_, {"127.0.0.1", address_.port}, {}, [this](std::unique_ptr<Stream> stream) {
                  ++visits_;
                  visit(std::move(stream));
                }).value();
  }
  void part(Error reason, std::unique_ptr<Stream> stream) {
    peers_.push_back(std::make_unique<HandPeer>(std::move(stream)));
    peers_.back()->connection().close(std::move(reason));
  }

  Result<std::string> join_until_it_gives_up(unsigned attempts_max = 10) {
    Result<std::string> result = std::string();
    bool over = false;
    std::thread node([&, address = address_] {
      JoinOptions options{.address = address, .node = {.name = "n"}, .attempts_max = attempts_max};
      options.delay_first = options.delay_max = std::chrono::milliseconds(1);
      options.on_progress = [&](const Contributed& done) { told_.push_back(done); };
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
  Address address_;
  std::unique_ptr<Listener> listener_;
  unsigned visits_ = 0;
  std::vector<std::unique_ptr<HandPeer>> peers_;
  std::vector<Contributed> told_;  // by the node's thread, which has ended when a test looks
};

TEST_F(JoinTest, a_corrupt_byte_costs_a_stay_and_not_the_node) {
  visit = [this](std::unique_ptr<Stream> stream) {
    peers_.push_back(std::make_unique<HandPeer>(std::move(stream)));
    Error reason = corrupt("a checksum that does not fit");
    if (visits_ == 3) reason = disconnected("the run is finished");
    peers_.back()->connection().close(std::move(reason));
  };
  const auto result = join_until_it_gives_up();
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(visits_, 3u);
}

TEST_F(JoinTest, a_link_that_is_corrupt_every_time_is_given_up) {
  visit = [this](std::unique_ptr<Stream> stream) {
    peers_.push_back(std::make_unique<HandPeer>(std::move(stream)));
    peers_.back()->connection().close(corrupt("a checksum that does not fit"));
  };
  const auto result = join_until_it_gives_up();
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::corrupt);
  EXPECT_EQ(visits_, 5u);
}

TEST_F(JoinTest, a_coordinator_that_is_gone_for_long_is_waited_for) {
  visit = [this](std::unique_ptr<Stream> stream) {
    part(disconnected("the run is finished"), std::move(stream));
  };
  listener_.reset();
  // Far more attempts than it used to make.
  loop_.after(std::chrono::milliseconds(300), [this] { listen(); });
  const auto result = join_until_it_gives_up(0);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(visits_, 1u);
}

TEST_F(JoinTest, a_coordinator_that_has_no_room_is_asked_again) {
  visit = [this](std::unique_ptr<Stream> stream) {
    if (visits_ == 20) part(disconnected("the run is finished"), std::move(stream));
  };
  const auto result = join_until_it_gives_up(0);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(visits_, 20u);
}

TEST_F(JoinTest, a_coordinator_that_is_busy_is_asked_again) {
  visit = [this](std::unique_ptr<Stream> stream) {
    part(visits_ == 3 ? disconnected("the run is finished") : overloaded("no ready for 600 s"),
         std::move(stream));
  };
  const auto result = join_until_it_gives_up(0);
  EXPECT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(visits_, 3u);
}

TEST_F(JoinTest, a_coordinator_that_was_stopped_and_can_be_resumed_is_waited_for) {
  visit = [this](std::unique_ptr<Stream> stream) {
    part(visits_ == 1 ? unavailable("the coordinator was stopped; the run can be resumed")
                      : disconnected("the run is finished"),
         std::move(stream));
  };
  const auto result = join_until_it_gives_up(0);
  ASSERT_TRUE(result.ok()) << result.error().to_string();
  EXPECT_EQ(*result, "the run is finished");
  EXPECT_EQ(visits_, 2u);
}

TEST_F(JoinTest, what_it_did_is_told_before_it_ends_also_when_that_is_nothing) {
  visit = [this](std::unique_ptr<Stream> stream) {
    part(disconnected("the run is finished"), std::move(stream));
  };
  ASSERT_TRUE(join_until_it_gives_up().ok());
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.back().run, "");
  EXPECT_EQ(told_.back().batches, 0u);
}

TEST_F(JoinTest, who_wants_an_end_gets_one) {
  listener_.reset();
  const auto nobody = join_until_it_gives_up(3);
  ASSERT_FALSE(nobody.ok());
  EXPECT_NE(nobody.error().message.find("no coordinator answers at"), std::string::npos);
  listen();
  visit = [](std::unique_ptr<Stream>) {};
  EXPECT_FALSE(join_until_it_gives_up(3).ok());
  EXPECT_EQ(visits_, 3u);
}

}  // namespace
}  // namespace w5xde
