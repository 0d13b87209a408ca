#include "learn/schedule.h"

#include <gtest/gtest.h>

#include <cmath>

namespace w5xde {
namespace {

TEST(ScheduleTest, a_constant_rate_stays) {
  const auto schedule = parse_schedule("constant", 100).value();
  EXPECT_EQ(schedule.factor(0), 1.0);
  EXPECT_EQ(schedule.factor(1'000'000), 1.0);
}

TEST(ScheduleTest, a_step_schedule_multiplies_by_gamma_every_so_often) {
  const auto schedule = parse_schedule("step:10,0.5", 100).value();
  EXPECT_EQ(schedule.factor(9), 1.0);
  EXPECT_EQ(schedule.factor(10), 0.5);
  EXPECT_EQ(schedule.factor(35), 0.125);
}

TEST(ScheduleTest, a_cosine_goes_from_one_to_nothing_over_the_run_and_stays_there) {
  const auto schedule = parse_schedule("cosine", 100).value();
  EXPECT_DOUBLE_EQ(schedule.factor(0), 1.0);
  EXPECT_NEAR(schedule.factor(50), 0.5, 1e-12);
  EXPECT_NEAR(schedule.factor(100), 0.0, 1e-12);
  EXPECT_NEAR(schedule.factor(150), 0.0, 1e-12);
  EXPECT_NEAR(schedule.factor(25), (1 + std::sqrt(0.5)) / 2, 1e-12);
}

TEST(ScheduleTest, a_warm_up_rises_in_equal_parts_and_ends_at_the_course) {
  const auto schedule = parse_schedule("constant+warmup:4", 100).value();
  EXPECT_NEAR(schedule.factor(0), 1.0 / 3, 1e-12);
  EXPECT_NEAR(schedule.factor(1), 0.5, 1e-12);
  EXPECT_NEAR(schedule.factor(2), 2.0 / 3, 1e-12);
  EXPECT_EQ(schedule.factor(4), 1.0);
}

TEST(ScheduleTest, what_is_read_is_written_back) {
  for (const char* text : {"constant", "cosine", "step:10,0.5", "cosine+warmup:20", "step:3,0.1+warmup:5"}) {
    EXPECT_EQ(to_string(parse_schedule(text, 100).value()), text);
  }
}

TEST(ScheduleTest, what_is_no_schedule_is_refused_with_those_that_are) {
  for (const char* text : {"", "linear", "step", "step:10", "step:,0.5", "step:10,x", "cosine+",
                           "cosine+warmup:", "cosine+warmup:x", "constant+cosine"}) {
    const auto schedule = parse_schedule(text, 100);
    ASSERT_FALSE(schedule.ok()) << text;
    EXPECT_NE(schedule.error().message.find("cosine"), std::string::npos);
  }
  EXPECT_FALSE(parse_schedule("step:0,0.5", 100).ok());
  EXPECT_FALSE(parse_schedule("step:5,0", 100).ok());
  EXPECT_FALSE(parse_schedule("cosine", 0).ok());
}

}  // namespace
}  // namespace w5xde
