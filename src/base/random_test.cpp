#include "base/random.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace w5xde {
namespace {

std::array<std::uint64_t, 5> first_five(std::uint64_t seed) {
  Random random(seed);
  std::array<std::uint64_t, 5> numbers{};
  for (auto& number : numbers) number = random.next();
  return numbers;
}

// These are the published values of SplitMix64 and of xoshiro256** seeded by it. A run is repeatable from its
// seed for as long as they hold, so they never change.
TEST(Random, is_the_published_generator_for_ever) {
  EXPECT_EQ(mix(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(mix(kMixStep), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(mix(2 * kMixStep), 0x06c45d188009454fu);

  const std::array<std::uint64_t, 5> of_zero = {0x99ec5f36cb75f2b4u, 0xbf6e1f784956452au, 0x1a5f849d4933e6e0u,
                                                0x6aa594f1262d2d2cu, 0xbba5ad4a1f842e59u};
  EXPECT_EQ(first_five(0), of_zero);
  const std::array<std::uint64_t, 5> of_one = {0xb3f2af6d0fc710c5u, 0x853b559647364ceau, 0x92f89756082a4514u,
                                               0x642e1c7bc266a3a7u, 0xb27a48e29a233673u};
  EXPECT_EQ(first_five(1), of_one);
}

// What is drawn from the generator is as much part of a run as the generator.
TEST(Random, draws_the_same_bounded_numbers_for_ever) {
  Random random(7);
  const std::array<std::uint64_t, 8> expected = {994, 674, 638, 664, 664, 721, 716, 196};
  std::array<std::uint64_t, 8> drawn{};
  for (auto& number : drawn) number = random.below(1000);
  EXPECT_EQ(drawn, expected);
  EXPECT_EQ(random.unit(), 0.40370652610252655);
}

RC_GTEST_PROP(Random, draws_below_its_bound, (std::uint64_t seed)) {
  const auto bound = *rc::gen::nonZero<std::uint64_t>();
  Random random(seed);
  for (int i = 0; i < 20; ++i) RC_ASSERT(random.below(bound) < bound);
}

RC_GTEST_PROP(Random, draws_units_from_zero_to_under_one, (std::uint64_t seed)) {
  Random random(seed);
  for (int i = 0; i < 20; ++i) {
    const double unit = random.unit();
    RC_ASSERT(unit >= 0.0 && unit < 1.0);
  }
}

TEST(Random, below_one_is_zero_and_below_the_greatest_bound_is_anything) {
  Random random(1);
  EXPECT_EQ(random.below(1), 0u);
  bool top_half = false;
  for (int i = 0; i < 64; ++i) top_half |= random.below(~std::uint64_t{0}) >> 63 != 0;
  EXPECT_TRUE(top_half);
}

TEST(Random, draws_every_number_below_its_bound_about_equally_often) {
  Random random(2);
  std::array<int, 6> seen{};
  constexpr int kDraws = 60'000;
  for (int i = 0; i < kDraws; ++i) ++seen[random.below(seen.size())];
  for (const int count : seen) EXPECT_NEAR(count, kDraws / 6.0, 500);  // more than five standard deviations
}

// A bound of 3/4 of the range is where taking the remainder alone would draw the lowest third twice as often.
TEST(Random, is_fair_for_bounds_that_do_not_divide_its_range) {
  Random random(3);
  constexpr std::uint64_t kBound = std::uint64_t{3} << 62;
  constexpr int kDraws = 30'000;
  int low = 0;
  for (int i = 0; i < kDraws; ++i) low += random.below(kBound) < kBound / 3 ? 1 : 0;
  EXPECT_NEAR(low, kDraws / 3.0, 500);
}

TEST(Random, of_neighbouring_seeds_has_nothing_in_common) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto mine = first_five(seed);
    const auto neighbours = first_five(seed + 1);
    for (const auto number : mine) EXPECT_EQ(std::count(neighbours.begin(), neighbours.end(), number), 0);
  }
}

TEST(Random, parts_of_a_seed_have_seeds_of_their_own) {
  EXPECT_NE(mix(1, 2), mix(2, 1));
  EXPECT_NE(mix(0, 0), mix(0));
  static_assert(mix(5, 6) == mix(mix(5) ^ 6));
}

RC_GTEST_PROP(Random, has_a_logarithm_that_agrees_with_the_library_s, (std::uint64_t seed)) {
  Random random(seed);
  for (int i = 0; i < 20; ++i) {
    const double value = std::ldexp(random.unit() + 0x1.0p-53, -static_cast<int>(random.below(100)));
    const double expected = std::log(value);
    RC_ASSERT(std::abs(repeatable_log(value) - expected) <= 1e-15 * std::max(1.0, std::abs(expected)));
  }
}

// Computed apart, in Python.
TEST(Random, draws_the_same_normal_numbers_for_ever) {
  Random random(7);
  const std::array<double, 4> expected = {0.9643618527255183, -0.3039301238656567, 0.30479435832638674,
                                          -1.7010190714940672};
  for (const double number : expected) EXPECT_EQ(random.normal(), number);
}

TEST(Random, draws_normal_numbers_with_the_moments_of_a_normal) {
  Random random(11);
  constexpr int kDraws = 200'000;
  std::array<double, 4> moments{};
  int beyond_two = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double number = random.normal();
    for (std::size_t power = 0; power < moments.size(); ++power) {
      moments[power] += std::pow(number, static_cast<double>(power + 1)) / kDraws;
    }
    beyond_two += std::abs(number) > 2.0 ? 1 : 0;
  }
  EXPECT_NEAR(moments[0], 0.0, 0.012);  // each tolerance is about five standard deviations
  EXPECT_NEAR(moments[1], 1.0, 0.016);
  EXPECT_NEAR(moments[2], 0.0, 0.045);
  EXPECT_NEAR(moments[3], 3.0, 0.11);
  EXPECT_NEAR(beyond_two / double{kDraws}, 0.0455, 0.0024);
}

}  // namespace
}  // namespace w5xde
