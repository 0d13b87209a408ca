#include "base/slot_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace w5xde {
namespace {

TEST(SlotBlockTest, a_block_begins_at_a_multiple_of_the_power_of_two_that_it_is_long_or_would_be) {
  for (std::uint32_t first = 0; first < 40; ++first) {
    EXPECT_FALSE((SlotBlock{first, 0}.valid())) << first;
    for (std::uint32_t count = 1; count < 40; ++count) {
      std::uint32_t power = 1;
      while (power < count) power *= 2;
      EXPECT_EQ((SlotBlock{first, count}.valid()), first % power == 0) << first << " + " << count;
      EXPECT_EQ((SlotBlock{first, count}.cut_off()), power != count) << count;
      EXPECT_EQ((SlotBlock{first, count}.tree_slots()), power) << count;
    }
  }
}

TEST(SlotBlockTest, a_block_that_reaches_past_the_last_slot_number_is_none) {
  EXPECT_TRUE((SlotBlock{0xfffffffe, 1}.valid()));
  EXPECT_FALSE((SlotBlock{0xffffffff, 1}.valid())) << "its end is 0";
  EXPECT_FALSE((SlotBlock{0x80000000, 0x80000000}.valid()));
  EXPECT_TRUE((SlotBlock{0, 0x80000000}.valid()));
  EXPECT_FALSE((SlotBlock{0, 0x80000001}.valid()));
}

TEST(SlotBlockTest, blocks_are_in_the_order_of_their_place_and_then_of_their_size) {
  std::vector<SlotBlock> blocks = {{4, 4}, {0, 8}, {4, 1}, {0, 1}};
  std::ranges::sort(blocks);
  EXPECT_EQ(blocks, (std::vector<SlotBlock>{{0, 1}, {0, 8}, {4, 1}, {4, 4}}));
  EXPECT_EQ(blocks.back().end(), 8u);
}

}  // namespace
}  // namespace w5xde
