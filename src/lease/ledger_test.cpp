#include "lease/ledger.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

// Leases at most `slots_max` slots to the node; the block, or none.
std::optional<SlotBlock> lease(Ledger& ledger, std::uint32_t slots_max, NodeId node, LeaseId lease) {
  Grant grant{.node = node, .lease = lease};
  if (!ledger.lease(slots_max, grant)) return std::nullopt;
  return grant.block;
}

Grant grant_of(SlotBlock block, NodeId node, LeaseId lease) {
  return {.node = node, .lease = lease, .block = block};
}

TEST(Ledger, begins_with_every_slot_open) {
  const Ledger ledger(40);
  EXPECT_EQ(ledger.open_slots(), 40u);
  EXPECT_FALSE(ledger.complete());
}

TEST(Ledger, leases_the_largest_block_that_fits) {
  Ledger ledger(40);
  EXPECT_EQ(lease(ledger, 39, 1, 1), (SlotBlock{0, 32}));
  EXPECT_EQ(lease(ledger, 39, 1, 2), (SlotBlock{32, 8}));
  EXPECT_EQ(lease(ledger, 64, 1, 3), std::nullopt);
}

TEST(Ledger, leases_a_whole_step_as_one_block_whatever_its_length) {
  for (const std::uint32_t slots : {1u, 3u, 6u, 32u, 40u, 63u}) {
    Ledger ledger(slots);
    EXPECT_EQ(lease(ledger, 64, 1, 1), (SlotBlock{0, slots}));
    EXPECT_TRUE(ledger.answer({0, slots}));
    EXPECT_TRUE(ledger.complete());
  }
}

TEST(Ledger, cuts_a_block_that_the_step_s_end_cuts_off_along_the_tree) {
  Ledger ledger(43);
  std::vector<SlotBlock> blocks;
  while (ledger.open_slots() > 0) blocks.push_back(*lease(ledger, 20, 1, 1));
  EXPECT_EQ(blocks, (std::vector<SlotBlock>{{0, 16}, {16, 16}, {32, 11}}));
}

TEST(Ledger, cuts_the_smallest_block_that_is_too_large) {
  Ledger ledger(40);
  EXPECT_EQ(lease(ledger, 32, 1, 1), (SlotBlock{0, 32}));
  ledger.release(1);
  EXPECT_EQ(lease(ledger, 4, 1, 2), (SlotBlock{32, 4}));
  EXPECT_EQ(lease(ledger, 4, 2, 3), (SlotBlock{36, 4}));
  EXPECT_EQ(lease(ledger, 4, 3, 4), (SlotBlock{0, 4}));
  EXPECT_EQ(ledger.open_slots(), 28u);
}

TEST(Ledger, takes_a_block_s_answer_once) {
  Ledger ledger(4);
  const SlotBlock block = *lease(ledger, 4, 1, 1);
  EXPECT_TRUE(ledger.answer(block));
  EXPECT_FALSE(ledger.answer(block));
  EXPECT_TRUE(ledger.complete());
}

TEST(Ledger, refuses_answers_to_what_was_not_leased) {
  Ledger ledger(8);
  EXPECT_FALSE(ledger.answer({0, 8}));  // open
  lease(ledger, 4, 1, 1);
  EXPECT_FALSE(ledger.answer({0, 8}));  // cut since
  EXPECT_FALSE(ledger.answer({2, 2}));
  EXPECT_FALSE(ledger.answer({16, 4}));
  EXPECT_EQ(ledger.answered_slots(), 0u);
}

TEST(Ledger, opens_a_lost_node_s_blocks_again) {
  Ledger ledger(8);
  const SlotBlock lost = *lease(ledger, 4, 1, 1);
  lease(ledger, 4, 2, 2);
  EXPECT_EQ(ledger.release(1), 4u);
  EXPECT_EQ(ledger.release(1), 0u);
  EXPECT_EQ(lease(ledger, 4, 2, 3), lost);
}

TEST(Ledger, keeps_a_block_that_two_nodes_had_with_the_one_that_is_left) {
  Ledger ledger(4);
  const SlotBlock block = *lease(ledger, 4, 1, 1);
  ledger.lease_again(grant_of(block, 2, 2));
  EXPECT_EQ(ledger.release(1), 0u);
  EXPECT_EQ(ledger.open_slots(), 0u);
  EXPECT_TRUE(ledger.answer(block));
}

TEST(Ledger, does_not_open_what_is_answered) {
  Ledger ledger(4);
  const SlotBlock block = *lease(ledger, 4, 1, 1);
  ledger.lease_again(grant_of(block, 2, 2));
  ledger.answer(block);
  EXPECT_EQ(ledger.release(2), 0u);
  EXPECT_TRUE(ledger.complete());
}

TEST(Ledger, opens_a_rejected_block) {
  Ledger ledger(4);
  const SlotBlock block = *lease(ledger, 2, 1, 1);
  EXPECT_EQ(ledger.reject(block, 9), 0u);
  EXPECT_EQ(ledger.reject(block, 1), 2u);
  EXPECT_EQ(ledger.open_slots(), 4u);
}

TEST(LedgerTest, slots_that_are_skipped_are_never_leased_and_the_others_still_are) {
  Ledger ledger(22);
  for (const std::uint32_t slot : {0u, 5u, 6u, 21u}) ledger.skip(slot);
  EXPECT_EQ(ledger.open_slots(), 18u);
  EXPECT_EQ(ledger.answered_slots(), 4u);
  std::vector<bool> leased(22);
  for (LeaseId number = 1; const auto block = lease(ledger, 4, 1, number); ++number) {
    EXPECT_TRUE(block->valid());
    for (std::uint32_t slot = block->first_slot; slot < block->end(); ++slot) leased[slot] = true;
    EXPECT_TRUE(ledger.answer(*block));
  }
  EXPECT_TRUE(ledger.complete());
  for (std::uint32_t slot = 0; slot < 22; ++slot)
    EXPECT_EQ(leased[slot], slot != 0 && slot != 5 && slot != 6 && slot != 21) << slot;
}

TEST(LedgerTest, no_block_is_larger_than_asked_for) {
  Ledger ledger(22, 8);
  std::vector<std::uint32_t> sizes;
  for (const auto& [first, entry] : ledger.entries()) sizes.push_back(entry.block.slot_count);
  EXPECT_EQ(sizes, (std::vector<std::uint32_t>{8, 8, 6}));
}

TEST(Ledger, leases_the_very_block_that_was_rejected) {
  Ledger ledger(8);
  const SlotBlock block = *lease(ledger, 2, 1, 1);
  ledger.reject(block, 1);
  EXPECT_FALSE(ledger.lease_block(grant_of({0, 4}, 2, 2))) << "it was cut";
  EXPECT_TRUE(ledger.lease_block(grant_of(block, 2, 2)));
  EXPECT_FALSE(ledger.lease_block(grant_of(block, 2, 3))) << "it is out";
  EXPECT_EQ(ledger.open_slots(), 6u);
  EXPECT_TRUE(ledger.answer(block));
}

}  // namespace
}  // namespace w5xde
