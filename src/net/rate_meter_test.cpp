#include "net/rate_meter.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

using std::chrono::milliseconds;

TEST(RateMeterTest, a_steady_flow_is_measured_and_pauses_do_not_count) {
  RateMeter meter;
  Instant now(std::chrono::seconds(5));
  EXPECT_EQ(meter.bytes_per_second(), 0);
  for (int burst = 0; burst < 50; ++burst) {
    meter.start(now);
    for (int i = 0; i < 10; ++i) {
      now += milliseconds(1);
      meter.moved(10'000, now);
    }
    meter.stop(now);
    now += std::chrono::seconds(1);
  }
  EXPECT_NEAR(meter.bytes_per_second(), 1e7, 1e5);
}

TEST(RateMeterTest, a_change_of_rate_is_followed_within_a_second_of_movement) {
  RateMeter meter;
  Instant now(std::chrono::seconds(5));
  meter.start(now);
  for (int i = 0; i < 500; ++i) meter.moved(10'000, now += milliseconds(1));
  for (int i = 0; i < 1000; ++i) meter.moved(1'000, now += milliseconds(1));
  EXPECT_NEAR(meter.bytes_per_second(), 1e6, 1e5);
}

TEST(RateMeterTest, bytes_outside_of_a_transfer_are_not_counted) {
  RateMeter meter;
  meter.moved(1'000'000, Instant(std::chrono::seconds(1)));
  meter.stop(Instant(std::chrono::seconds(2)));
  EXPECT_EQ(meter.bytes_per_second(), 0);
}

}  // namespace
}  // namespace w5xde
