// What a connection makes of what the kernel says about its link.
#include <gtest/gtest.h>

#include <memory>

#include "support/hand_peer.h"
#include "support/memory_stream.h"
#include "support/sim_loop.h"
#include "support/watched_stream.h"

namespace w5xde {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// Two connections over memory, one of which hears from a made-up kernel.
class ConnectionLinkTest : public testing::Test {
 protected:
  ConnectionLinkTest() {
    auto [near, far] = make_memory_streams(loop_, 64 * 1024);
    near_ = std::make_unique<HandPeer>(std::make_unique<WatchedStream>(std::move(near), watch_));
    far_ = std::make_unique<HandPeer>(std::move(far));
  }

  Connection& connection() { return near_->connection(); }
  void kernel_says(double bytes_per_second, bool sender_limited = false) {
    watch_.tcp = TcpReport{.round_trip_min = milliseconds(40),
                           .delivery_bytes_per_second = bytes_per_second,
                           .sender_limited = sender_limited};
  }
  // As a frame that is sent then would see it.
  double rate_a_moment_later() {
    loop_.run_for(milliseconds(20));
    return connection().outgoing_bytes_per_second();
  }

  SimLoop loop_;
  Watch watch_;
  std::unique_ptr<HandPeer> near_, far_;
};

TEST_F(ConnectionLinkTest, one_wrong_estimate_does_not_make_a_fast_link_slow) {
  for (const double rate : {100e6, 101e6, 102e6}) {
    kernel_says(rate);
    (void)rate_a_moment_later();
  }
  kernel_says(4000);
  EXPECT_GE(rate_a_moment_later(), 100e6);
  kernel_says(99e6);
  EXPECT_GE(rate_a_moment_later(), 99e6);
}

TEST_F(ConnectionLinkTest, a_sender_with_little_to_send_does_not_make_a_fast_link_slow) {
  kernel_says(100e6);
  (void)rate_a_moment_later();
  for (const double rate : {1e6, 2e6, 3e6}) {
    kernel_says(rate, true);
    EXPECT_EQ(rate_a_moment_later(), 100e6);
  }
}

TEST_F(ConnectionLinkTest, many_frames_in_a_moment_ask_the_kernel_once) {
  kernel_says(100e6);
  loop_.run_for(milliseconds(20));
  const std::size_t before = watch_.reports;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(connection().outgoing_bytes_per_second(), 100e6);
  EXPECT_EQ(watch_.reports, before + 1);
  loop_.run_for(milliseconds(20));
  (void)connection().outgoing_bytes_per_second();
  EXPECT_EQ(watch_.reports, before + 2) << "and again when that is old";
}

TEST_F(ConnectionLinkTest, without_a_kernel_the_rate_is_what_the_stream_took) {
  EXPECT_EQ(connection().outgoing_bytes_per_second(), 0);
  EXPECT_EQ(rate_a_moment_later(), connection().link().send_bytes_per_second);
}

TEST_F(ConnectionLinkTest, the_socket_is_fitted_to_what_was_measured) {
  for (const double rate : {100e6, 101e6, 102e6}) {
    kernel_says(rate);
    (void)rate_a_moment_later();
  }
  loop_.run_for(seconds(10));
  ASSERT_FALSE(watch_.fittings.empty());
  EXPECT_EQ(watch_.fittings.back(), (MeasuredLink{.send_bytes_per_second = 101e6,
                                                  .send_rate_limited_by_link = true,
                                                  .round_trip = milliseconds(40)}));
}

TEST_F(ConnectionLinkTest, a_sender_with_little_to_send_is_not_taken_for_its_link) {
  kernel_says(1e6, true);
  loop_.run_for(seconds(10));
  ASSERT_FALSE(watch_.fittings.empty());
  EXPECT_FALSE(watch_.fittings.back().send_rate_limited_by_link);
}

TEST_F(ConnectionLinkTest, a_buffer_size_that_was_set_is_not_fitted) {
  connection().tune({.send_buffer_bytes = 1 << 20, .receive_buffer_bytes = 1 << 20});
  kernel_says(100e6);
  loop_.run_for(seconds(10));
  EXPECT_TRUE(watch_.fittings.empty());
}

TEST_F(ConnectionLinkTest, without_a_kernel_nothing_is_fitted) {
  loop_.run_for(seconds(10));
  EXPECT_TRUE(watch_.fittings.empty());
}

}  // namespace
}  // namespace w5xde
