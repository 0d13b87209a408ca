#include "local_pool/batch_choice.h"

#include <gtest/gtest.h>

#include "support/fake_engine.h"

namespace w5xde {
namespace {

using Sizes = std::vector<std::uint32_t>;

RunConfig asked(std::uint32_t slots = 32, std::uint32_t accumulate = 1) {
  RunConfig config{.model = "fake", .data = "synthetic"};
  config.slots = slots;
  config.accumulate = accumulate;
  return config;
}

TEST(BatchChoiceTest, sizes_double_as_long_as_the_global_batch_has_eight_slots_of_them) {
  EXPECT_EQ(batch_sizes(asked(), 60'000), (Sizes{8, 16, 32, 64, 128})) << "of 1,024 samples";
  EXPECT_EQ(batch_sizes(asked(32, 2), 60'000), (Sizes{8, 16, 32, 64, 128, 256}));
  EXPECT_EQ(batch_sizes(asked(1), 60'000), (Sizes{8})) << "of 32";
}

TEST(BatchChoiceTest, no_size_is_more_than_the_data_has) {
  EXPECT_EQ(batch_sizes(asked(), 50), (Sizes{8, 16, 32}));
  EXPECT_EQ(batch_sizes(asked(), 5), (Sizes{5}));
}

TEST(BatchChoiceTest, the_smallest_within_a_tenth_of_the_best_is_chosen) {
  const std::vector<BatchTrial> rising = {{8, 100}, {16, 180}, {32, 300}, {64, 460}, {128, 500}};
  EXPECT_EQ(choose_batch(asked(), rising), (BatchChoice{64, 16}));
  const std::vector<BatchTrial> flat = {{8, 95}, {16, 99}, {32, 100}};
  EXPECT_EQ(choose_batch(asked(), flat), (BatchChoice{8, 128}));
  const std::vector<BatchTrial> falling = {{8, 100}, {16, 130}, {32, 90}};
  EXPECT_EQ(choose_batch(asked(), falling), (BatchChoice{16, 64}));
  const std::vector<BatchTrial> one = {{5, 1}};
  EXPECT_EQ(choose_batch(asked(), one), (BatchChoice{5, 205})) << "1,025 samples: the nearest to 1,024";
}

TEST(BatchChoiceTest, a_step_has_eight_slots_at_least_whatever_was_asked_for) {
  const std::vector<BatchTrial> trials = {{8, 100}, {16, 200}};
  EXPECT_EQ(choose_batch(asked(2), trials), (BatchChoice{16, 8}));
  EXPECT_EQ(choose_batch(asked(1, 4), trials), (BatchChoice{16, 2})) << "times --accumulate 4";
}

TEST(BatchChoiceTest, an_engine_is_measured_in_every_size) {
  FakeEngine engine;
  const auto data = open_dataset("synthetic", Split::train, 1).value();
  const auto trials = try_batches(engine, data, 1, Sizes{8, 16}).value();
  ASSERT_EQ(trials.size(), 2u);
  EXPECT_EQ(trials[0].batch, 8u);
  EXPECT_EQ(trials[1].batch, 16u);
  for (const BatchTrial& trial : trials) EXPECT_GT(trial.samples_per_second, 0);
}

TEST(BatchChoiceTest, an_engine_that_cannot_compute_says_why) {
  FakeEngine engine([](std::uint64_t, std::span<float>) -> Status { return invalid("no"); });
  const auto data = open_dataset("synthetic", Split::train, 1).value();
  const auto trials = try_batches(engine, data, 1, Sizes{8});
  ASSERT_FALSE(trials.ok());
  EXPECT_EQ(trials.error().message, "no");
}

}  // namespace
}  // namespace w5xde
