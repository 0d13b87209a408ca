#include "base/slot_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace w5xde {
namespace {

TEST(SlotBlockTest, a_block_is_a_power_of_two_long_and_begins_at_a_multiple_of_that) {
  for (std::uint32_t first = 0; first < 40; ++first) {
    for (std::uint32_t count = 0; count < 40; ++count) {
      const bool power = count == 1 || count == 2 || count == 4 || count == 8 || count == 16 || count == 32;
      EXPECT_EQ((SlotBlock{first, count}.valid()), power && first % count == 0) << first << " + " << count;
    }
  }
}

TEST(SlotBlockTest, a_block_that_reaches_past_the_last_slot_number_is_none) {
  EXPECT_TRUE((SlotBlock{0xfffffffe, 1}.valid()));
  EXPECT_FALSE((SlotBlock{0xffffffff, 1}.valid())) << "its end is 0";
  EXPECT_FALSE((SlotBlock{0x80000000, 0x80000000}.valid()));
  EXPECT_TRUE((SlotBlock{0, 0x80000000}.valid()));
}

TEST(SlotBlockTest, blocks_are_in_the_order_of_their_place_and_then_of_their_size) {
  std::vector<SlotBlock> blocks = {{4, 4}, {0, 8}, {4, 1}, {0, 1}};
  std::ranges::sort(blocks);
  EXPECT_EQ(blocks, (std::vector<SlotBlock>{{0, 1}, {0, 8}, {4, 1}, {4, 4}}));
  EXPECT_EQ(blocks.back().end(), 8u);
}

}  // namespace
}  // namespace w5xde
