#include "learn/seeds.h"

#include <gtest/gtest.h>

#include <bit>
#include <set>

namespace w5xde {
namespace {

TEST(SeedsTest, every_slot_of_every_step_of_every_run_has_its_own) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t run = 0; run < 5; ++run) {
    for (std::uint64_t step = 0; step < 40; ++step) {
      for (std::uint32_t slot = 0; slot < 40; ++slot) seeds.insert(slot_seed(step_seed(run, step), slot));
    }
  }
  EXPECT_EQ(seeds.size(), 5u * 40 * 40);
}

TEST(SeedsTest, seeds_of_neighbours_have_about_half_of_their_bits_in_common) {
  for (std::uint64_t step = 0; step < 50; ++step) {
    for (std::uint32_t slot = 0; slot < 50; ++slot) {
      const std::uint64_t seed = slot_seed(step_seed(1, step), slot);
      for (const std::uint64_t neighbour :
           {slot_seed(step_seed(1, step), slot + 1), slot_seed(step_seed(1, step + 1), slot),
            slot_seed(step_seed(2, step), slot)}) {
        const int differing = std::popcount(seed ^ neighbour);
        EXPECT_GT(differing, 8) << step << " " << slot;
        EXPECT_LT(differing, 56) << step << " " << slot;
      }
    }
  }
}

TEST(SeedsTest, step_and_slot_are_not_interchangeable) {
  EXPECT_NE(slot_seed(step_seed(1, 2), 3), slot_seed(step_seed(1, 3), 2));
  EXPECT_NE(step_seed(1, 2), step_seed(2, 1));
}

TEST(SeedsTest, they_are_these_and_stay_these) {
  // A run that is resumed by a newer version goes on with the same draws.
  EXPECT_EQ(step_seed(1, 0), 0x5e41ab087439611eu);
  EXPECT_EQ(slot_seed(step_seed(1, 0), 0), 0x672bf35ee2b5923eu);
  EXPECT_EQ(slot_seed(step_seed(7, 123), 45), 0x43513a505865ddf5u);
}

}  // namespace
}  // namespace w5xde
