#include "data/held_out.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/data_files.h"

namespace w5xde {
namespace {

std::vector<std::uint32_t> numbers_of(const Dataset& part) {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < part.samples(); ++i) numbers.push_back(part.number_in_whole(i));
  return numbers;
}

std::shared_ptr<const Dataset> samples(unsigned count) {
  return open_dataset("random:3,7," + std::to_string(count), Split::train, 1).value();
}

TEST(HeldOutTest, the_two_parts_share_no_sample_and_are_all_samples_together) {
  for (const double fraction : {0.001, 0.1, 0.25, 0.5, 0.999}) {
    const Parts parts = hold_out(samples(101), fraction, 5).value();
    auto all = numbers_of(*parts.train);
    const auto held_out = numbers_of(*parts.evaluation);
    EXPECT_TRUE(std::ranges::is_sorted(all) && std::ranges::is_sorted(held_out));
    all.insert(all.end(), held_out.begin(), held_out.end());
    std::ranges::sort(all);
    ASSERT_EQ(all.size(), 101u) << fraction;
    for (std::uint32_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i) << fraction;
  }
}

TEST(HeldOutTest, the_fraction_is_rounded_and_leaves_neither_part_empty) {
  const auto held_out = [](unsigned count, double fraction) {
    return hold_out(samples(count), fraction, 5).value().evaluation->samples();
  };
  EXPECT_EQ(held_out(1000, 0.1), 100u);
  EXPECT_EQ(held_out(10, 0.26), 3u);
  EXPECT_EQ(held_out(10, 1e-9), 1u);
  EXPECT_EQ(held_out(10, 0.999), 9u);
  EXPECT_TRUE(says(refusal_of(hold_out(samples(1), 0.5, 5)), "1 sample cannot be split"));
}

TEST(HeldOutTest, the_seed_alone_says_which_samples_are_held_out) {
  const auto held_out = [](std::uint64_t seed) {
    return numbers_of(*hold_out(samples(200), 0.2, seed).value().evaluation);
  };
  EXPECT_EQ(held_out(5), held_out(5));
  EXPECT_NE(held_out(5), held_out(6));
}

TEST(HeldOutTest, a_part_has_the_samples_and_the_classes_of_the_whole_set) {
  const auto whole = samples(50);
  const Parts parts = hold_out(whole, 0.3, 5).value();
  for (const auto& part : {parts.train, parts.evaluation}) {
    EXPECT_EQ(part->classes(), whole->classes());
    EXPECT_EQ(part->inputs().shape, whole->inputs().shape);
    EXPECT_EQ(part->targets().dtype, whole->targets().dtype);
    const Gathered here = gather_from(*part, {2, 0, 2});
    const Gathered there =
        gather_from(*whole, {part->number_in_whole(2), part->number_in_whole(0), part->number_in_whole(2)});
    EXPECT_EQ(here.inputs, there.inputs);
    EXPECT_EQ(here.targets, there.targets);
  }
}

TEST(HeldOutTest, a_part_of_a_part_counts_by_the_whole_set) {
  const auto first = hold_out(samples(50), 0.5, 5).value().train;
  const auto second = hold_out(first, 0.5, 5).value().train;
  for (const std::uint32_t number : numbers_of(*second))
    EXPECT_TRUE(std::ranges::count(numbers_of(*first), number) == 1) << number;
}

}  // namespace
}  // namespace w5xde
