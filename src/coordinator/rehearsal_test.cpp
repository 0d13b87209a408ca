#include "coordinator/rehearsal.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

// Leases are dear, so that a step is not given out bit by bit.
Rehearsal rehearse(std::uint32_t slots, std::uint32_t nodes, std::uint32_t grain = 0) {
  return Rehearsal::of(
      {.slots = slots, .grain = grain, .nodes = nodes, .slot_seconds = 0.01, .exchange_seconds = 1});
}

TEST(RehearsalTest, equal_shares_that_are_blocks_are_one_contribution_a_node) {
  const Rehearsal step = rehearse(32, 4);
  EXPECT_DOUBLE_EQ(step.contributions, 4);
  EXPECT_DOUBLE_EQ(step.nodes, 4);
  EXPECT_GE(step.seconds, 8 * 0.01);
  EXPECT_LE(step.seconds, 8 * 0.0115);
}

TEST(RehearsalTest, shares_that_are_no_blocks_are_several) {
  const Rehearsal step = rehearse(32, 3);
  EXPECT_GT(step.contributions, 3);
  EXPECT_GE(step.seconds, 11 * 0.0085);
  EXPECT_LE(step.seconds, 13 * 0.0115);
}

TEST(RehearsalTest, no_more_nodes_than_slots_have_a_part) {
  const Rehearsal step = rehearse(4, 100);
  EXPECT_DOUBLE_EQ(step.nodes, 4);
  EXPECT_DOUBLE_EQ(step.contributions, 4);
}

TEST(RehearsalTest, a_grain_is_kept) {
  EXPECT_DOUBLE_EQ(rehearse(32, 2, 4).contributions, 8);
}

TEST(RehearsalTest, where_exchanges_are_cheap_a_step_is_given_out_bit_by_bit) {
  const Rehearsal step =
      Rehearsal::of({.slots = 32, .nodes = 2, .slot_seconds = 0.02, .exchange_seconds = 1e-4});
  EXPECT_GT(step.contributions, 4);
  EXPECT_LE(step.seconds, 17 * 0.0205);
}

TEST(RehearsalTest, slots_of_many_seconds_come_to_an_end) {
  EXPECT_GE(Rehearsal::of({.slots = 8, .nodes = 3, .slot_seconds = 60}).seconds, 3 * 50.0);
}

TEST(RehearsalTest, it_is_the_same_every_time) {
  EXPECT_EQ(rehearse(40, 7).seconds, rehearse(40, 7).seconds);
}

}  // namespace
}  // namespace w5xde
