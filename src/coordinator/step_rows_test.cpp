#include "coordinator/step_rows.h"

#include <gtest/gtest.h>

#include <vector>

namespace w5xde {
namespace {

constexpr auto kStep = std::chrono::milliseconds(1);

// The rows of steps a millisecond apart, the loss of each its number.
std::vector<RunDatabase::StepRow> rows_of(StepRows& rows, std::uint64_t first, std::uint64_t last) {
  std::vector<RunDatabase::StepRow> taken;
  for (std::uint64_t step = first; step <= last; ++step) {
    const Instant now = Instant() + step * kStep;
    rows.committed(static_cast<double>(step), 32, 4, now);
    if (rows.due()) taken.push_back(rows.take(now).value());
  }
  return taken;
}

TEST(StepRowsTest, every_step_of_a_short_run_has_a_row) {
  StepRows rows;
  rows.begin(Instant());
  const auto taken = rows_of(rows, 1, 625);
  ASSERT_EQ(taken.size(), 625u);
  for (const auto& row : taken) {
    EXPECT_EQ(row.steps, 1u);
    EXPECT_EQ(row.samples, 32u);
    EXPECT_DOUBLE_EQ(row.batches_per_second, 4000);
  }
  EXPECT_EQ(taken.back().loss, 625);
}

TEST(StepRowsTest, rows_are_of_more_steps_as_a_run_grows_long_and_none_is_left_out) {
  StepRows rows;
  rows.begin(Instant());
  const auto taken = rows_of(rows, 1, 100'000);
  EXPECT_LT(taken.size(), 10 * RunDatabase::kStepRowsMax);
  std::uint64_t steps = 0;
  double losses = 0;
  for (const auto& row : taken) {
    steps += row.steps;
    losses += row.loss * static_cast<double>(row.steps);
  }
  if (const auto rest = rows.take(Instant() + 100'000 * kStep)) {
    steps += rest->steps;
    losses += rest->loss * static_cast<double>(rest->steps);
  }
  EXPECT_EQ(steps, 100'000u);
  EXPECT_DOUBLE_EQ(losses, 100'000.0 * 100'001 / 2);
  EXPECT_EQ(taken.back().steps, 64u);
}

TEST(StepRowsTest, a_resumed_run_goes_on_with_rows_of_the_size_that_they_had) {
  StepRows rows;
  rows.resume(50'000);
  rows.begin(Instant());
  const auto taken = rows_of(rows, 1, 320);
  ASSERT_EQ(taken.size(), 10u);
  EXPECT_EQ(taken.front().steps, 32u);
}

TEST(StepRowsTest, without_a_step_there_is_no_row) {
  StepRows rows;
  rows.begin(Instant());
  EXPECT_FALSE(rows.take(Instant() + kStep).has_value());
}

TEST(StepRowsTest, the_speed_of_the_moment_follows_the_pool) {
  StepRows rows;
  rows.begin(Instant());
  (void)rows_of(rows, 1, 2000);
  EXPECT_NEAR(rows.batches_per_second(), 4000, 100);
  for (std::uint64_t step = 1; step <= 200; ++step)
    rows.committed(1, 32, 4, Instant() + 2000 * kStep + step * 10 * kStep);
  EXPECT_NEAR(rows.batches_per_second(), 400, 100);
}

}  // namespace
}  // namespace w5xde
