#include "base/clock.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

namespace w5xde {
namespace {

using namespace std::chrono_literals;

TEST(SteadyClock, never_goes_back_and_does_not_stand_still) {
  const SteadyClock clock;
  const Instant start = clock.now();
  Instant last = start;
  while (last == start) {
    const Instant next = clock.now();
    ASSERT_GE(next, last);
    last = next;
  }
  EXPECT_GT(last, start);
}

TEST(Duration, is_seconds_and_seconds_are_a_duration) {
  EXPECT_EQ(seconds_of(1500ms), 1.5);
  EXPECT_EQ(seconds_of(-1ns), -1e-9);
  EXPECT_EQ(duration_of(0.25), 250ms);
  EXPECT_EQ(duration_of(-2.0), -2s);
  EXPECT_EQ(duration_of(0.0), 0ns);
}

RC_GTEST_PROP(Duration, of_seconds_is_within_a_nanosecond, (std::int32_t milliseconds)) {
  const Duration exact = std::chrono::milliseconds(milliseconds);
  RC_ASSERT(std::abs((duration_of(seconds_of(exact)) - exact).count()) <= 1);
}

TEST(Duration, of_more_seconds_than_it_can_hold_is_the_longest) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(duration_of(1e300), Duration::max());
  EXPECT_EQ(duration_of(kInfinity), Duration::max());
  EXPECT_EQ(duration_of(seconds_of(Duration::max())), Duration::max());
  EXPECT_EQ(duration_of(-1e300), Duration::min());
  EXPECT_EQ(duration_of(-kInfinity), Duration::min());
  EXPECT_EQ(duration_of(std::nan("")), Duration::min());
}

}  // namespace
}  // namespace w5xde
