#include "coordinator/feedback.h"

#include <gtest/gtest.h>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class FeedbackStoreTest : public testing::Test {
 protected:
  std::shared_ptr<const BlockLayout> layout_ = BlockLayout::make({{"w", Shape{32}}}, 1 << 10).value();
  FeedbackStore store_{layout_};
  TemporaryFolder folder_;

  std::vector<float> block(float value, std::size_t blocks = 1) const {
    return std::vector<float>(blocks * layout_->floats(), value);
  }
};

TEST_F(FeedbackStoreTest, what_two_nodes_left_is_handed_over_as_one) {
  EXPECT_FALSE(store_.orphaned());
  store_.take_over(block(1));
  store_.take_over(block(2, 2));
  ASSERT_TRUE(store_.orphaned());
  const auto sum = store_.hand_over();
  ASSERT_EQ(sum.size(), 2 * layout_->floats());
  EXPECT_EQ(sum.front(), 3);
  EXPECT_EQ(sum.back(), 2);
  EXPECT_FALSE(store_.orphaned());
}

TEST_F(FeedbackStoreTest, a_checkpoint_waits_for_all_but_those_that_are_gone) {
  store_.gather({1, 2, 3}, Instant());
  store_.gathered(1, block(1), false);
  store_.gathered(1, block(1), false);
  store_.gathered(9, block(100), false);
  store_.gone(2);
  EXPECT_TRUE(store_.gathering());
  store_.gathered(3, block(4), false);
  EXPECT_FALSE(store_.gathering());
  store_.take_over(block(0.5));
  const auto blocks = store_.blocks();
  ASSERT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks[0].group, "feedback");
  EXPECT_EQ(blocks[0].values[0], 5.5) << "once from each that was asked, and what nobody has";
}

TEST_F(FeedbackStoreTest, knows_since_when_it_waits_for_a_node) {
  const Instant first{}, second = first + std::chrono::seconds(3);
  store_.gather({1}, first);
  store_.gather({1, 2}, second);
  EXPECT_EQ(store_.awaited(), (std::map<NodeId, Instant>{{1, first}, {2, second}}));
}

TEST_F(FeedbackStoreTest, a_copy_of_a_node_that_rests_is_good_until_it_works_or_goes) {
  const auto total = [&] { return store_.blocks()[0].values[0]; };
  store_.gather({1, 2}, Instant());
  store_.gathered(1, block(1), false);
  store_.gathered(2, block(2), true);
  EXPECT_TRUE(store_.has_copy(2));
  EXPECT_FALSE(store_.has_copy(1));
  EXPECT_EQ(total(), 3.0F);
  store_.gather({1}, Instant());
  store_.gathered(1, block(4), false);
  EXPECT_EQ(total(), 6.0F);
  store_.changed(2);
  EXPECT_FALSE(store_.has_copy(2));
  store_.gather({1, 2}, Instant());
  store_.gathered(1, block(4), false);
  store_.gathered(2, block(3), true);
  store_.gone(2);
  EXPECT_EQ(total(), 4.0F);
}

TEST_F(FeedbackStoreTest, what_a_checkpoint_has_is_nobody_s_when_it_is_opened) {
  store_.take_over(block(2, 2));
  store_.gather({}, Instant());
  auto blocks = store_.blocks();
  ASSERT_EQ(blocks.size(), 2u);
  const auto parameters = block(0);
  blocks.insert(blocks.begin(), {"parameters", layout_.get(), parameters});
  ASSERT_TRUE(write_checkpoint(folder_ / "a.safetensors", {}, blocks).ok());
  FeedbackStore opened(layout_);
  ASSERT_TRUE(opened.restore(CheckpointFile::open(folder_ / "a.safetensors").value()).ok());
  EXPECT_EQ(opened.hand_over(), block(2, 2));
}

}  // namespace
}  // namespace w5xde
