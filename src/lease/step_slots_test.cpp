#include "lease/step_slots.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

TEST(StepSlotsTest, steps_have_one_size_and_the_last_has_what_is_left) {
  const StepSlots steps({.slots = 6, .slots_total = 20});
  EXPECT_EQ(steps.slots_of(0), 6u);
  EXPECT_EQ(steps.slots_of(2), 6u);
  EXPECT_EQ(steps.slots_of(3), 2u);
  EXPECT_EQ(steps.full_slots_of(3), 6u);
  EXPECT_EQ(steps.slots_of(4), 0u);
  EXPECT_EQ(steps.first_slot_of(3), 18u);
  EXPECT_EQ(steps.steps(), 4u);
}

TEST(StepSlotsTest, a_run_without_an_end_goes_on) {
  const StepSlots steps({.slots = 6});
  EXPECT_EQ(steps.slots_of(1'000'000), 6u);
  EXPECT_EQ(steps.steps(), 0u);
}

TEST(StepSlotsTest, from_a_growth_on_steps_are_larger_and_no_slot_is_left_out) {
  StepSlots steps({.slots = 6, .slots_total = 100});
  steps.grow(3, 12);
  steps.grow(5, 24);
  std::uint64_t slot = 0;
  const std::uint32_t sizes[] = {6, 6, 6, 12, 12, 24, 24, 10};
  for (std::uint64_t step = 0; step < 8; ++step) {
    EXPECT_EQ(steps.first_slot_of(step), slot);
    EXPECT_EQ(steps.slots_of(step), sizes[step]) << step;
    slot += sizes[step];
  }
  EXPECT_EQ(slot, 100u);
  EXPECT_EQ(steps.slots_of(8), 0u);
  EXPECT_EQ(steps.steps(), 8u);
}

TEST(StepSlotsTest, whichever_end_comes_first_is_the_end_whatever_the_steps_have_grown_to) {
  StepSlots steps({.slots = 6, .slots_total = 100, .steps_total = 7});
  steps.grow(3, 12);
  EXPECT_EQ(steps.slots_of(6), 12u);
  EXPECT_EQ(steps.slots_of(7), 0u);
  EXPECT_EQ(steps.steps(), 7u);
  steps.grow(6, 1000);
  EXPECT_EQ(steps.slots_of(6), 46u);
  EXPECT_EQ(steps.steps(), 7u);
}

TEST(StepSlotsTest, a_run_that_is_extended_after_a_short_step_begins_where_that_ended) {
  const StepSlots steps({.slots = 12, .first_step = 4, .first_slot = 40, .slots_total = 80});
  EXPECT_EQ(steps.first_slot_of(4), 40u);
  EXPECT_EQ(steps.slots_of(4), 12u);
  EXPECT_EQ(steps.first_slot_of(7), 76u);
  EXPECT_EQ(steps.slots_of(7), 4u);
  EXPECT_EQ(steps.first_slot_of(8), 80u);
  EXPECT_EQ(steps.first_slot_of(9), 80u);
  EXPECT_EQ(steps.slots_of(8), 0u);
  EXPECT_EQ(steps.steps(), 8u);
}

TEST(StepSlotsTest, growths_before_a_resume_are_the_size_of_its_steps_and_move_no_slot) {
  StepSlots steps({.slots = 6, .first_step = 6, .first_slot = 61, .slots_total = 200});
  steps.grow(3, 12);
  steps.grow(8, 24);
  EXPECT_EQ(steps.full_slots_of(2), 6u);
  EXPECT_EQ(steps.full_slots_of(5), 12u);
  EXPECT_EQ(steps.first_slot_of(6), 61u);
  EXPECT_EQ(steps.first_slot_of(8), 85u);
  EXPECT_EQ(steps.first_slot_of(10), 133u);
  EXPECT_EQ(steps.slots_of(12), 19u);
  EXPECT_EQ(steps.steps(), 13u);
}

TEST(StepSlotsTest, a_run_that_is_past_its_end_has_no_step_left) {
  const StepSlots steps({.slots = 12, .first_step = 4, .first_slot = 40, .slots_total = 30});
  EXPECT_EQ(steps.slots_of(4), 0u);
  EXPECT_EQ(steps.first_slot_of(4), 40u);
  EXPECT_EQ(steps.steps(), 4u);
}

TEST(StepSlotsTest, a_growth_past_the_end_changes_nothing) {
  StepSlots steps({.slots = 6, .slots_total = 20});
  steps.grow(6, 12);
  EXPECT_EQ(steps.slots_of(3), 2u);
  EXPECT_EQ(steps.slots_of(6), 0u);
  EXPECT_EQ(steps.steps(), 4u);
}

}  // namespace
}  // namespace w5xde
