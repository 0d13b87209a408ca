#include "learn/step_in_progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace w5xde {
namespace {

constexpr std::uint64_t kFloats = 4;

Reduction::Buffer buffer_of(float value) {
  auto buffer = std::make_unique<AlignedBuffer>(kFloats * sizeof(float));
  std::fill_n(reinterpret_cast<float*>(buffer->data()), kFloats, value);
  return buffer;
}

class StepInProgressTest : public testing::Test {
 protected:
  StepInProgressTest() { step_.begin(2, kFloats, kFloats); }
  void land(std::uint64_t node, std::uint32_t slot) {
    step_.begin_landing(node, {.block = {slot, 1}, .values = landing_, .samples = 1});
  }

  StepInProgress step_{nullptr};
  std::array<float, kFloats> landing_ = {2, 2, 2, 2};
  std::vector<Reduction::Buffer> spare_;
};

TEST_F(StepInProgressTest, what_is_here_of_every_slot_is_taken_while_the_rest_lands) {
  ASSERT_TRUE(step_.add({0, 1}, buffer_of(1), {.samples = 1}, spare_).ok());
  EXPECT_TRUE(step_.next_part().empty());
  land(7, 1);
  ASSERT_TRUE(step_.landed(7, 3));
  const Reduction::Part part = step_.next_part();
  EXPECT_EQ(part.last, 3U);
  EXPECT_EQ(part.samples, 2U);
  for (const float sum : step_.take_part(part).first(3)) EXPECT_EQ(sum, 3);
  EXPECT_EQ(step_.taken(), 3U);
}

TEST_F(StepInProgressTest, slots_land_from_one_node_at_a_time) {
  land(7, 1);
  land(8, 1);
  EXPECT_EQ(step_.landings(), 1U);
  EXPECT_FALSE(step_.landed(8, 1));
  step_.forget_landing(7);
  land(8, 1);
  EXPECT_TRUE(step_.landed(8, 1));
  step_.answered({0, 2});
  EXPECT_EQ(step_.landings(), 0U);
}

TEST_F(StepInProgressTest, the_next_step_begins_with_nothing) {
  land(7, 1);
  step_.set_out();
  step_.feedback_changed();
  step_.begin(2, kFloats, kFloats);
  EXPECT_EQ(step_.landings(), 0U);
  EXPECT_FALSE(step_.is_out());
  EXPECT_FALSE(step_.has_changed_feedback());
  EXPECT_FALSE(step_.committed(0));  // a batch that does not grow
}

}  // namespace
}  // namespace w5xde
