#include "coordinator/feedback.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  store_.take_over(1, block(1));
  store_.take_over(2, block(2, 2));
  ASSERT_TRUE(store_.orphaned());
  const auto sum = store_.hand_over(3);
  ASSERT_EQ(sum.size(), 2 * layout_->floats());
  EXPECT_EQ(sum.front(), 3);
  EXPECT_EQ(sum.back(), 2);
  EXPECT_FALSE(store_.orphaned());
}

TEST_F(FeedbackStoreTest, a_piece_that_crosses_its_heir_s_goodbye_is_handed_to_another) {
  store_.take_over(1, block(1));
  (void)store_.hand_over(2);
  EXPECT_FALSE(store_.may_hand_over_to(2)) << "it is not known whether it has the last one";
  EXPECT_TRUE(store_.may_hand_over_to(3));
  store_.take_over(2, block(4), 0);
  EXPECT_EQ(store_.hand_over(3)[0], 5.0F);
  store_.take_over(3, block(8), 1);
  EXPECT_EQ(store_.hand_over(4)[0], 8.0F) << "this one had it, and said so";
}

TEST_F(FeedbackStoreTest, a_copy_shows_that_its_node_has_what_it_was_handed) {
  store_.take_over(1, block(1));
  (void)store_.hand_over(2);
  store_.gather({2}, Instant());
  store_.gathered(2, block(1), false);
  EXPECT_TRUE(store_.may_hand_over_to(2));
  store_.take_over(3, block(2));
  (void)store_.hand_over(2);
  store_.take_over(2, block(1), 1);
  EXPECT_EQ(store_.hand_over(4)[0], 3.0F) << "the second crossed its goodbye";
}

TEST_F(FeedbackStoreTest, a_checkpoint_waits_for_all_but_those_that_are_gone) {
  store_.take_over(7, block(0.5));
  store_.gather({1, 2, 3}, Instant());
  store_.gathered(1, block(1), false);
  store_.gathered(1, block(1), false);
  store_.gathered(9, block(100), false);
  store_.gone(2);
  EXPECT_TRUE(store_.gathering());
  store_.gathered(3, block(4), false);
  EXPECT_FALSE(store_.gathering());
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
  EXPECT_EQ(total(), 7.0F) << "a checkpoint that has it keeps it";
  store_.gather({1}, Instant());
  store_.gathered(1, block(4), false);
  EXPECT_EQ(total(), 4.0F);
}

TEST_F(FeedbackStoreTest, a_copy_from_before_its_node_went_on_is_not_kept) {
  store_.gather({1}, Instant());
  store_.changed(1);
  store_.gathered(1, block(1), true);
  EXPECT_EQ(store_.blocks()[0].values[0], 1.0F) << "it is of the checkpoint that asked for it";
  EXPECT_FALSE(store_.has_copy(1));
  store_.gather({1}, Instant());
  store_.gathered(1, block(2), true);
  EXPECT_TRUE(store_.has_copy(1));
}

TEST_F(FeedbackStoreTest, a_checkpoint_has_nothing_of_later_steps) {
  const auto total = [&] { return store_.blocks()[0].values[0]; };
  store_.gather({1, 2, 3}, Instant());
  store_.gathered(1, block(1), true);
  store_.take_over(1, block(10));  // has gone on since its copy
  store_.take_over(2, block(2));   // leaves before it was asked
  store_.take_over(4, block(20));  // had nothing when the checkpoint was begun
  store_.gathered(3, block(4), true);
  store_.changed(3);
  EXPECT_FALSE(store_.gathering());
  EXPECT_EQ(total(), 7.0F);
  store_.gather({}, Instant());
  EXPECT_EQ(total(), 32.0F) << "the next one has";
}

TEST_F(FeedbackStoreTest, what_a_checkpoint_has_is_nobody_s_when_it_is_opened) {
  store_.take_over(1, block(2, 2));
  store_.gather({}, Instant());
  auto blocks = store_.blocks();
  ASSERT_EQ(blocks.size(), 2u);
  const auto parameters = block(0);
  blocks.insert(blocks.begin(), {"parameters", layout_.get(), parameters});
  ASSERT_TRUE(write_checkpoint(folder_ / "a.safetensors", {}, blocks).ok());
  FeedbackStore opened(layout_);
  ASSERT_TRUE(opened.restore(CheckpointFile::open(folder_ / "a.safetensors").value()).ok());
  EXPECT_TRUE(std::ranges::equal(opened.hand_over(1), block(2, 2)));
}

}  // namespace
}  // namespace w5xde
