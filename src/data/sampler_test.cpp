#include "data/sampler.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

namespace w5xde {
namespace {

std::vector<std::uint32_t> copy_of(std::span<const std::uint32_t> numbers) {
  return {numbers.begin(), numbers.end()};
}

std::vector<std::uint32_t> epoch_of(Sampler& sampler, std::uint64_t epoch) {
  std::vector<std::uint32_t> numbers;
  for (std::uint64_t i = 0; i < sampler.slots_per_epoch(); ++i) {
    const auto samples = sampler.samples_of(epoch * sampler.slots_per_epoch() + i);
    numbers.insert(numbers.end(), samples.begin(), samples.end());
  }
  return numbers;
}

std::vector<std::uint32_t> first_numbers(std::uint64_t count) {
  std::vector<std::uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0u);
  return numbers;
}

Sampler::Options any_options() {
  Sampler::Options options;
  options.samples = *rc::gen::inRange<std::uint64_t>(1, 200);
  options.batch = *rc::gen::inRange<std::uint32_t>(1, 70);
  options.seed = *rc::gen::arbitrary<std::uint64_t>();
  options.shuffle = *rc::gen::arbitrary<bool>();
  return options;
}

RC_GTEST_PROP(SamplerTest, every_epoch_has_every_sample_exactly_once, ()) {
  const auto options = any_options();
  Sampler sampler(options);
  const auto epoch = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 40);
  auto numbers = epoch_of(sampler, epoch);
  std::ranges::sort(numbers);
  RC_ASSERT(numbers == first_numbers(options.samples));
}

RC_GTEST_PROP(SamplerTest, a_slot_s_samples_depend_on_its_number_alone, ()) {
  const auto options = any_options();
  Sampler walker(options);
  // Back and forth over more epochs than are kept.
  const auto slots = *rc::gen::container<std::vector<std::uint64_t>>(
      rc::gen::inRange<std::uint64_t>(0, 12 * walker.slots_per_epoch()));
  for (const std::uint64_t slot : slots) {
    Sampler fresh(options);
    RC_ASSERT(copy_of(walker.samples_of(slot)) == copy_of(fresh.samples_of(slot)));
  }
}

RC_GTEST_PROP(SamplerTest, counts_agree_with_the_samples, ()) {
  const auto options = any_options();
  Sampler sampler(options);
  std::uint64_t before = 0;
  for (std::uint64_t slot = 0; slot < 3 * sampler.slots_per_epoch() + 1; ++slot) {
    RC_ASSERT(sampler.samples_before(slot) == before);
    const auto count = sampler.samples_of(slot).size();
    RC_ASSERT(sampler.count_of(slot) == count);
    // A slot of one that is left over joins the one before it.
    RC_ASSERT(count >= 1u && count <= options.batch + (options.shuffle ? 1u : 0u));
    RC_ASSERT(sampler.epoch_of(slot) == before / options.samples);
    before += count;
  }
}

// The original WIIIIIDE's workload: 1,000 samples in batches of 32 are 31 full slots and one of 8.
TEST(SamplerTest, the_last_slot_of_an_epoch_has_what_is_left) {
  const Sampler sampler({.samples = 1000, .batch = 32, .seed = 1});
  EXPECT_EQ(sampler.slots_per_epoch(), 32u);
  EXPECT_EQ(sampler.count_of(30), 32u);
  EXPECT_EQ(sampler.count_of(31), 8u);
  EXPECT_EQ(sampler.count_of(32), 32u);
  EXPECT_EQ(sampler.samples_before(32), 1000u);
  EXPECT_EQ(sampler.samples_before(33), 1032u);
}

// BatchNorm cannot be trained on one sample.
RC_GTEST_PROP(SamplerTest, no_training_slot_has_one_sample_unless_all_do, ()) {
  auto options = any_options();
  options.shuffle = true;
  RC_PRE(options.batch > 1 && options.samples > 1);
  const Sampler sampler(options);
  for (std::uint64_t slot = 0; slot < sampler.slots_per_epoch(); ++slot)
    RC_ASSERT(sampler.count_of(slot) > 1);
}

TEST(SamplerTest, a_last_slot_of_one_sample_joins_the_one_before) {
  Sampler sampler({.samples = 65, .batch = 32, .seed = 1});
  EXPECT_EQ(sampler.slots_per_epoch(), 2u);
  EXPECT_EQ(sampler.count_of(0), 32u);
  EXPECT_EQ(sampler.count_of(1), 33u);
  EXPECT_EQ(sampler.samples_of(1).size(), 33u);
  EXPECT_EQ(sampler.count_of(2), 32u);
  EXPECT_EQ(sampler.samples_before(2), 65u);
  EXPECT_EQ(sampler.samples_before(3), 97u);
}

TEST(SamplerTest, slots_of_one_sample_stay_where_nothing_else_was_asked_for) {
  EXPECT_EQ(Sampler({.samples = 5, .batch = 1, .seed = 1}).slots_per_epoch(), 5u);
  EXPECT_EQ(Sampler({.samples = 1, .batch = 32, .seed = 1}).slots_per_epoch(), 1u);
  const Sampler evaluation({.samples = 65, .batch = 32, .shuffle = false});
  EXPECT_EQ(evaluation.slots_per_epoch(), 3u);
  EXPECT_EQ(evaluation.count_of(2), 1u);
}

TEST(SamplerTest, a_batch_larger_than_the_set_is_the_set) {
  Sampler sampler({.samples = 3, .batch = 0xffffffff, .seed = 1});
  EXPECT_EQ(sampler.slots_per_epoch(), 1u);
  EXPECT_EQ(sampler.samples_of(5).size(), 3u);
}

TEST(SamplerTest, epochs_and_seeds_shuffle_differently) {
  Sampler one({.samples = 100, .batch = 10, .seed = 1});
  Sampler two({.samples = 100, .batch = 10, .seed = 2});
  const auto first = epoch_of(one, 0);
  EXPECT_NE(first, first_numbers(100));
  EXPECT_NE(first, epoch_of(one, 1));
  EXPECT_NE(first, epoch_of(two, 0));
}

TEST(SamplerTest, evaluation_walks_in_order) {
  Sampler sampler({.samples = 100, .batch = 7, .shuffle = false});
  EXPECT_EQ(epoch_of(sampler, 0), first_numbers(100));
  EXPECT_EQ(epoch_of(sampler, 9), first_numbers(100));
}

// A run is repeatable from its seed for as long as these hold.
TEST(SamplerTest, shuffles_the_same_for_ever) {
  Sampler sampler({.samples = 10, .batch = 10, .seed = 42});
  EXPECT_EQ(copy_of(sampler.samples_of(0)), (std::vector<std::uint32_t>{9, 3, 4, 2, 6, 0, 8, 1, 5, 7}));
  EXPECT_EQ(copy_of(sampler.samples_of(1)), (std::vector<std::uint32_t>{4, 0, 9, 2, 7, 8, 1, 3, 6, 5}));
}

// Every order of three samples, a sixth of the epochs each.
TEST(SamplerTest, every_order_is_equally_likely) {
  Sampler sampler({.samples = 3, .batch = 3, .seed = 9});
  std::map<std::vector<std::uint32_t>, int> seen;
  for (std::uint64_t slot = 0; slot < 6000; ++slot) ++seen[copy_of(sampler.samples_of(slot))];
  EXPECT_EQ(seen.size(), 6u);
  for (const auto& [order, count] : seen) EXPECT_NEAR(count, 1000, 150);  // five standard deviations
}

}  // namespace
}  // namespace w5xde
