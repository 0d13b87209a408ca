#include "net/liveness.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A peer that answers after a fixed time, ticked as a Connection does.
class LivenessTest : public testing::Test {
 protected:
  void tick_until(Instant end, std::optional<Duration> answers_after) {
    while (now_ < end && !verdict_) {
      now_ += live_.interval();
      if (live_.tick(now_)) {
        live_.pinged(++token_, now_);
        if (answers_after) {
          live_.heard(now_ + *answers_after);
          live_.ponged(token_, now_ + *answers_after);
        }
      }
      verdict_ = live_.verdict(now_, false);
    }
  }

  Instant now_ = Instant(seconds(1000));
  Liveness live_{now_};
  std::uint64_t token_ = 0;
  std::optional<Error> verdict_;
};

TEST_F(LivenessTest, the_round_trip_is_measured) {
  tick_until(now_ + seconds(60), milliseconds(40));
  EXPECT_FALSE(verdict_);
  EXPECT_NEAR(seconds_of(live_.round_trip()), 0.040, 0.001);
}

TEST_F(LivenessTest, a_peer_that_stops_answering_is_noticed_within_seconds) {
  tick_until(now_ + seconds(60), milliseconds(1));
  const Instant stopped = now_;
  tick_until(now_ + seconds(60), std::nullopt);
  ASSERT_TRUE(verdict_);
  EXPECT_EQ(verdict_->kind, ErrorKind::disconnected);
  EXPECT_LE(now_ - stopped, seconds(4));
  EXPECT_NE(verdict_->message.find("no answer for"), std::string::npos);
}

TEST_F(LivenessTest, a_slow_link_gets_patience_in_proportion) {
  tick_until(now_ + seconds(600), seconds(2));
  EXPECT_FALSE(verdict_);
  EXPECT_GE(live_.patience(), seconds(16));
  EXPECT_LE(live_.patience(), seconds(90));
}

TEST_F(LivenessTest, a_peer_that_answers_ever_later_gets_no_patience_without_end) {
  tick_until(now_ + seconds(3600), seconds(50));
  EXPECT_LE(live_.patience(), seconds(60));
}

TEST_F(LivenessTest, a_peer_that_never_answers_is_noticed_too) {
  tick_until(now_ + seconds(60), std::nullopt);
  EXPECT_TRUE(verdict_);
}

TEST_F(LivenessTest, bytes_that_arrive_count_as_life_even_without_a_pong) {
  tick_until(now_ + seconds(20), milliseconds(1));
  live_.tick(now_);
  live_.pinged(++token_, now_);
  for (int i = 0; i < 100; ++i) {
    now_ += milliseconds(500);
    live_.tick(now_);
    live_.heard(now_);
    ASSERT_FALSE(live_.verdict(now_, false));
  }
}

TEST_F(LivenessTest, a_stuck_backlog_is_noticed_and_a_moving_one_is_not) {
  tick_until(now_ + seconds(20), milliseconds(1));
  for (int i = 0; i < 100; ++i) {
    now_ += milliseconds(500);
    live_.tick(now_);
    live_.progressed(now_);
    ASSERT_FALSE(live_.verdict(now_, true));
  }
  for (int i = 0; i < 10; ++i) {
    now_ += milliseconds(500);
    live_.tick(now_);
  }
  ASSERT_TRUE(live_.verdict(now_, true));
  EXPECT_NE(live_.verdict(now_, true)->message.find("took no bytes for"), std::string::npos);
}

TEST_F(LivenessTest, a_process_that_stood_still_itself_blames_nobody) {
  tick_until(now_ + seconds(20), milliseconds(1));
  live_.tick(now_);
  live_.pinged(++token_, now_);
  now_ += seconds(300);
  live_.tick(now_);
  EXPECT_FALSE(live_.verdict(now_, false));
  EXPECT_FALSE(live_.verdict(now_, true));
}

TEST_F(LivenessTest, a_pong_nobody_asked_for_measures_nothing) {
  live_.ponged(99, now_ + seconds(5));
  EXPECT_EQ(live_.round_trip(), Duration::zero());
  live_.pinged(1, now_);
  live_.ponged(2, now_ + seconds(5));
  EXPECT_EQ(live_.round_trip(), Duration::zero());
}

}  // namespace
}  // namespace w5xde
