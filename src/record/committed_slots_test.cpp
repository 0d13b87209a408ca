#include "record/committed_slots.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace w5xde {
namespace {

TEST(CommittedSlotsTest, ranges_that_begin_where_the_last_one_ended_move_the_cursor) {
  CommittedSlots slots(40);
  slots.add(40, 12);
  slots.add(52, 4);
  EXPECT_EQ(slots.next(), 56u);
  EXPECT_EQ(slots.end(), 56u);
  EXPECT_EQ(slots.missing(), 0u);
  EXPECT_EQ(slots.twice(), 0u);
}

TEST(CommittedSlotsTest, what_is_skipped_is_missing_and_stops_the_cursor) {
  CommittedSlots slots;
  slots.add(0, 40);
  slots.add(48, 12);
  EXPECT_EQ(slots.next(), 40u);
  EXPECT_EQ(slots.end(), 60u);
  EXPECT_EQ(slots.missing(), 8u);
  EXPECT_EQ(slots.twice(), 0u);
}

TEST(CommittedSlotsTest, what_is_committed_again_is_counted_wherever_it_is) {
  CommittedSlots slots;
  slots.add(0, 10);
  slots.add(8, 4);   // 8 and 9
  slots.add(20, 5);  // ahead
  slots.add(22, 6);  // 22 to 24
  slots.add(30, 2);
  slots.add(26, 6);  // 26, 27, 30 and 31
  EXPECT_EQ(slots.twice(), 9u);
  EXPECT_EQ(slots.next(), 12u);
  EXPECT_EQ(slots.missing(), 8u);
}

TEST(CommittedSlotsTest, every_slot_once_in_any_order_leaves_nothing_missing) {
  Random random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::uint64_t> cuts = {0};
    while (cuts.back() < 100) cuts.push_back(cuts.back() + 1 + random.below(9));
    std::vector<std::size_t> order(cuts.size() - 1);
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    CommittedSlots slots;
    for (const std::size_t i : order) slots.add(cuts[i], cuts[i + 1] - cuts[i]);
    EXPECT_EQ(slots.next(), cuts.back());
    EXPECT_EQ(slots.end(), cuts.back());
    EXPECT_EQ(slots.missing(), 0u);
    EXPECT_EQ(slots.twice(), 0u);
  }
}

}  // namespace
}  // namespace w5xde
