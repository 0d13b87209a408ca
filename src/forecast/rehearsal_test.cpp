#include "forecast/rehearsal.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

// Leases are expensive, so that a step is not given out bit by bit.
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

TEST(RehearsalTest, where_a_link_costs_more_than_computing_few_have_a_part) {
  const Rehearsal step = Rehearsal::of(
      {.slots = 40, .nodes = 4, .slot_seconds = 0.001, .exchange_seconds = 0.5, .step_seconds = 1});
  EXPECT_GE(step.nodes, 1);
  EXPECT_LT(step.nodes, 1.5);
  EXPECT_GT(step.seconds, 0.8 * 40 * 0.001);
}

TEST(RehearsalTest, where_computing_takes_longer_than_the_link_all_have_a_part) {
  const Rehearsal step = Rehearsal::of(
      {.slots = 40, .nodes = 4, .slot_seconds = 1, .exchange_seconds = 0.05, .step_seconds = 0.1});
  EXPECT_DOUBLE_EQ(step.nodes, 4);
}

TEST(RehearsalTest, those_whose_turn_it_is_not_have_no_part) {
  Rehearsal::Options options{.slots = 40,
                             .nodes = 10,
                             .lanes = 2,
                             .slot_seconds = 0.1,
                             .exchange_seconds = 0.05,
                             .step_seconds = 0.1};
  EXPECT_NEAR(Rehearsal::of(options).nodes, 2, 0.2);
  options.lanes = 0;
  EXPECT_GT(Rehearsal::of(options).nodes, 5);
}

TEST(RehearsalTest, a_lease_of_this_step_does_not_wait_behind_one_of_the_next) {
  // Both nodes are far, and a step is given out bit by bit: what is left of it comes after the next one's.
  const Rehearsal step = Rehearsal::of(
      {.slots = 40, .nodes = 2, .slot_seconds = 0.1, .exchange_seconds = 0.05, .step_seconds = 0.1});
  EXPECT_LE(step.seconds, 21 * 0.1085);
}

TEST(RehearsalTest, it_is_the_same_every_time) {
  EXPECT_EQ(rehearse(40, 7).seconds, rehearse(40, 7).seconds);
}

}  // namespace
}  // namespace w5xde
