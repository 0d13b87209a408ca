#include "lease/doubts.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

using Said = Doubts::Said;

TEST(Doubts, two_different_nodes_are_believed_one_that_says_it_twice_is_not) {
  Doubts doubts;
  EXPECT_EQ(doubts.add(3, {0, 4}, 1, "one"), Said::once);
  EXPECT_EQ(doubts.add(3, {0, 4}, 1, "one"), Said::twice_by_one);
  EXPECT_EQ(doubts.add(3, {0, 4}, 9, "one"), Said::twice_by_one) << "it left and came back";
  EXPECT_EQ(doubts.add(3, {4, 4}, 2, "two"), Said::once) << "of other slots";
  EXPECT_EQ(doubts.add(4, {0, 4}, 2, "two"), Said::once) << "of another step";
  EXPECT_EQ(doubts.add(3, {2, 2}, 2, "two"), Said::by_two) << "a part of the same slots";
}

TEST(Doubts, a_node_is_refuted_when_others_have_computed_all_of_its_slots) {
  Doubts doubts;
  doubts.add(3, {0, 4}, 1, "one");
  EXPECT_TRUE(doubts.refuted_by(3, {4, 4}, "two").empty());
  EXPECT_TRUE(doubts.refuted_by(3, {0, 2}, "two").empty()) << "the other half may be what is not finite";
  EXPECT_EQ(doubts.refuted_by(3, {2, 2}, "three"), std::vector<NodeId>{1});
  EXPECT_TRUE(doubts.refuted_by(3, {2, 2}, "three").empty()) << "once";
}

TEST(Doubts, a_node_that_corrects_itself_is_not_refuted) {
  Doubts doubts;
  doubts.add(3, {0, 4}, 1, "one");
  EXPECT_TRUE(doubts.refuted_by(3, {0, 4}, "one").empty());
  EXPECT_EQ(doubts.add(3, {0, 4}, 2, "two"), Said::once) << "that is settled";
}

}  // namespace
}  // namespace w5xde
