#include "learn/global_batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace w5xde {
namespace {

GlobalBatch::Options options(std::uint64_t every = 5) {
  GlobalBatch::Options options{.batch = 10, .slots = 4};
  options.growth = {.policy = BatchPolicy::grows, .every = every};
  options.optimizer.learning_rate = 0.1;
  return options;
}

// Halves of one sample each whose noise scale is this exactly.
void measure(GlobalBatch& batch, float noise_scale) {
  // They are 2 √(scale / 2) apart, and their product is 1.
  const float aside = std::sqrt(noise_scale / 2), ahead = std::sqrt(1 + noise_scale / 2);
  const std::vector<float> left = {ahead, aside}, right = {ahead, -aside};
  batch.measure({left, {.samples = 1}}, {right, {.samples = 1}}, 2, nullptr);
}

TEST(GlobalBatchTest, it_doubles_when_the_noise_scale_is_twice_the_batch) {
  GlobalBatch batch(options(), {});
  for (std::uint64_t step = 0; step < 4; ++step) {
    measure(batch, 85);
    EXPECT_FALSE(batch.committed(step)) << "not before it has measured for some steps";
  }
  measure(batch, 85);
  const auto growth = batch.committed(4);
  ASSERT_TRUE(growth.has_value());
  EXPECT_EQ(growth->step, 7u) << "steps that may be under way keep their size";
  EXPECT_EQ(growth->samples_before, 40u);
  EXPECT_EQ(growth->samples, 80u);
  EXPECT_NEAR(growth->noise_scale, 85, 0.1);
  EXPECT_DOUBLE_EQ(growth->learning_rate_before, 0.1);
  EXPECT_DOUBLE_EQ(growth->learning_rate, 0.2);
  EXPECT_EQ(batch.slots_of(*growth), 8u);
}

TEST(GlobalBatchTest, it_stays_when_the_noise_scale_is_less) {
  GlobalBatch batch(options(), {});
  for (std::uint64_t step = 0; step < 100; ++step) {
    measure(batch, 75);
    EXPECT_FALSE(batch.committed(step));
  }
}

TEST(GlobalBatchTest, it_grows_once_in_so_many_steps_and_no_further_than_its_limit) {
  GlobalBatch::Options limited = options();
  limited.growth.samples_max = 200;
  GlobalBatch batch(limited, {});
  std::vector<std::uint64_t> steps;
  for (std::uint64_t step = 0; step < 100; ++step) {
    measure(batch, 1e6);
    if (const auto growth = batch.committed(step)) steps.push_back(growth->step);
  }
  EXPECT_EQ(steps, (std::vector<std::uint64_t>{7, 14})) << "40, 80, 160 samples; 320 are too many";
}

TEST(GlobalBatchTest, by_itself_it_grows_to_64_times_the_first) {
  GlobalBatch batch(options(1), {});
  for (std::uint64_t step = 0; step < 100; ++step) {
    measure(batch, 1e6);
    batch.committed(step);
  }
  EXPECT_EQ(batch.growths().back().samples, 64u * 40);
}

TEST(GlobalBatchTest, one_that_goes_on_from_a_saved_state_decides_the_same) {
  GlobalBatch whole(options(), {});
  std::optional<GlobalBatch> part(std::in_place, options(), BatchGrowthState{});
  for (std::uint64_t step = 0; step < 60; ++step) {
    const auto noise = static_cast<float>(10 * step);
    measure(whole, noise);
    measure(*part, noise);
    const auto growth = whole.committed(step);
    EXPECT_EQ(growth, part->committed(step));
    part.emplace(options(), BatchGrowthState(part->state()));
  }
  EXPECT_GE(whole.growths().size(), 2u);
  EXPECT_EQ(whole.state(), part->state());
}

TEST(GlobalBatchTest, what_was_measured_of_a_step_is_not_in_the_state_before_it_is_committed) {
  GlobalBatch batch(options(), {});
  measure(batch, 85);
  EXPECT_EQ(batch.state(), BatchGrowthState());
  batch.committed(0);
  EXPECT_EQ(batch.state().steps, 1u);
  const BatchGrowthState saved = batch.state();
  measure(batch, 20);
  EXPECT_EQ(batch.state(), saved) << "a run that goes on from here measures that step again";
}

TEST(GlobalBatchTest, the_learning_rate_follows_the_optimizer_or_what_was_asked_for) {
  const auto factor = [](OptimizerOptions::Kind kind, RateScaling scaling) {
    GlobalBatch::Options asked = options();
    asked.optimizer.kind = kind;
    asked.growth.scaling = scaling;
    return GlobalBatch(asked, {}).rate_factor(16);
  };
  using Kind = OptimizerOptions::Kind;
  EXPECT_EQ(factor(Kind::sgd, RateScaling::by_optimizer), 4);
  EXPECT_EQ(factor(Kind::adam, RateScaling::by_optimizer), 2);
  EXPECT_EQ(factor(Kind::adamw, RateScaling::by_optimizer), 2);
  EXPECT_EQ(factor(Kind::adamw, RateScaling::linear), 4);
  EXPECT_EQ(factor(Kind::sgd, RateScaling::sqrt), 2);
  EXPECT_EQ(factor(Kind::sgd, RateScaling::none), 1);
  EXPECT_EQ(GlobalBatch(options(), {}).rate_factor(4), 1);
}

}  // namespace
}  // namespace w5xde
