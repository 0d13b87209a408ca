#include "learn/reduction.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace w5xde {
namespace {

constexpr std::uint64_t kFloats = 5;
using Values = std::vector<float>;

// Slot values of very different sizes, so that another order of additions gives other bits.
std::vector<Values> slot_values(std::uint32_t slots, std::uint64_t seed) {
  Random random(seed);
  std::vector<Values> values(slots, Values(kFloats));
  for (Values& slot : values) {
    for (float& value : slot) {
      value = static_cast<float>(std::ldexp(random.unit() - 0.5, static_cast<int>(random.below(40))));
    }
  }
  return values;
}

// The definition of the tree, written as plainly as it can be.
Values sum_of(const std::vector<Values>& slots, std::uint32_t first, std::uint32_t count) {
  if (count == 1) return slots[first];
  Values left = sum_of(slots, first, count / 2);
  if (first + count / 2 >= slots.size()) return left;
  const Values right = sum_of(slots, first + count / 2, count / 2);
  for (std::size_t i = 0; i < left.size(); ++i) left[i] += right[i];
  return left;
}

Values root_of(const std::vector<Values>& slots) {
  return sum_of(slots, 0, std::bit_ceil(static_cast<std::uint32_t>(slots.size())));
}

Reduction::Buffer buffer_of(const Values& values) {
  auto buffer = std::make_unique<AlignedBuffer>(values.size() * sizeof(float));
  std::memcpy(buffer->data(), values.data(), values.size() * sizeof(float));
  return buffer;
}

Values values_of(const AlignedBuffer& buffer) {
  Values values(kFloats);
  std::memcpy(values.data(), buffer.data(), kFloats * sizeof(float));
  return values;
}

// A step's slots cut into aligned blocks at random, in random order.
std::vector<SlotBlock> random_blocks(std::uint32_t slots, Random& random) {
  std::vector<SlotBlock> open = {{0, std::bit_ceil(slots)}}, blocks;
  while (!open.empty()) {
    const SlotBlock block = open.back();
    open.pop_back();
    if (block.first_slot >= slots) continue;
    if (block.slot_count > 1 && random.below(3) != 0) {
      open.push_back({block.first_slot, block.slot_count / 2});
      open.push_back({block.first_slot + block.slot_count / 2, block.slot_count / 2});
    } else {
      // Past the step's end a block may go on or not.
      const bool cut = block.end() > slots && random.below(2) == 0;
      blocks.push_back({block.first_slot, cut ? slots - block.first_slot : block.slot_count});
    }
  }
  for (std::size_t i = blocks.size(); i > 1; --i) std::swap(blocks[i - 1], blocks[random.below(i)]);
  return blocks;
}

// Blocks that arrive float by float, one here and one there; nodes are lost in the middle of it, and what
// they had sent is sent again by another.
RC_GTEST_PROP(ReductionTest, parts_that_are_taken_early_are_the_same_bits, (std::uint64_t seed)) {
  const auto slots = *rc::gen::inRange<std::uint32_t>(1, 40);
  const auto values = slot_values(slots, seed);
  Random random(seed);
  struct Sender {
    SlotBlock block;
    Reduction::Buffer buffer;
    std::uint64_t landed = 0;
  };
  std::vector<Sender> senders;
  for (const SlotBlock block : random_blocks(slots, random)) {
    senders.push_back({block, buffer_of(sum_of(values, block.first_slot, block.tree_slots()))});
  }
  Reduction reduction(slots, kFloats);
  std::vector<Reduction::Buffer> spare;
  Values sum;
  while (!senders.empty()) {
    const std::size_t chosen = random.below(senders.size());
    Sender& sender = senders[chosen];
    if (random.below(10) == 0) {
      sender = {sender.block, buffer_of(sum_of(values, sender.block.first_slot, sender.block.tree_slots()))};
    } else if (++sender.landed == kFloats) {
      const std::uint32_t end = std::min(sender.block.end(), slots);
      RC_ASSERT(reduction
                    .add(sender.block, std::move(sender.buffer), {1.0, end - sender.block.first_slot},
                         nullptr, spare)
                    .ok());
      senders.erase(senders.begin() + static_cast<std::ptrdiff_t>(chosen));
    }
    std::vector<Landing> landing;
    for (Sender& each : senders) {
      const std::uint32_t end = std::min(each.block.end(), slots);
      landing.push_back({.block = each.block,
                         .values = {reinterpret_cast<float*>(each.buffer->data()), kFloats},
                         .landed = each.landed,
                         .samples = end - each.block.first_slot});
    }
    const Reduction::Part part = reduction.next_part(landing);
    if (part.empty() || senders.empty()) continue;
    RC_ASSERT(part.samples == slots);
    RC_ASSERT(part.first == sum.size());
    const auto taken = reduction.take_part(part, landing, nullptr);
    sum.insert(sum.end(), taken.begin(), taken.end());
  }
  Sums sums;
  const std::uint64_t taken = reduction.taken();
  RC_ASSERT(taken == sum.size());
  const Values rest = values_of(*reduction.take(sums));
  sum.insert(sum.end(), rest.begin() + static_cast<std::ptrdiff_t>(taken), rest.end());
  RC_ASSERT(sums.samples == slots);
  RC_ASSERT(sum == root_of(values));
}

RC_GTEST_PROP(ReductionTest, the_bits_do_not_depend_on_blocks_order_or_threads, (std::uint64_t seed)) {
  const auto slots = *rc::gen::inRange<std::uint32_t>(1, 70);
  const auto values = slot_values(slots, seed);
  Random random(seed + 1);
  ThreadPool pool(1);
  Reduction reduction(slots, kFloats);
  std::vector<Reduction::Buffer> spare;
  const auto blocks = random_blocks(slots, random);
  for (const SlotBlock block : blocks) {
    RC_ASSERT(!reduction.complete());
    const Sums sums{.loss = 1, .samples = std::min(block.slot_count, slots - block.first_slot)};
    RC_ASSERT(
        reduction
            .add(block, buffer_of(sum_of(values, block.first_slot, block.tree_slots())), sums, &pool, spare)
            .ok());
  }
  RC_ASSERT(reduction.complete());
  Sums sums;
  const Values root = values_of(*reduction.take(sums));
  const Values expected = root_of(values);
  RC_ASSERT(std::memcmp(root.data(), expected.data(), kFloats * sizeof(float)) == 0);
  RC_ASSERT(sums.samples == slots);
  RC_ASSERT(spare.size() == blocks.size() - 1);
}

TEST(ReductionTest, another_order_of_additions_would_give_other_bits) {
  const auto values = slot_values(40, 1);
  Values in_order(kFloats, 0.0f);
  for (const Values& slot : values) {
    for (std::size_t i = 0; i < kFloats; ++i) in_order[i] += slot[i];
  }
  EXPECT_NE(in_order, root_of(values));
}

TEST(ReductionTest, a_slot_that_comes_again_is_refused_whatever_block_it_comes_in) {
  Reduction reduction(8, kFloats);
  std::vector<Reduction::Buffer> spare;
  const Values values(kFloats, 1.0f);
  ASSERT_TRUE(reduction.add({2, 2}, buffer_of(values), {}, nullptr, spare).ok());
  for (const SlotBlock again : {SlotBlock{2, 2}, {2, 1}, {3, 1}, {0, 4}, {0, 8}}) {
    EXPECT_EQ(reduction.add(again, buffer_of(values), {}, nullptr, spare).error().kind, ErrorKind::invalid);
  }
  EXPECT_TRUE(reduction.add({0, 2}, buffer_of(values), {}, nullptr, spare).ok());
  EXPECT_EQ(reduction.add({1, 1}, buffer_of(values), {}, nullptr, spare).error().kind, ErrorKind::invalid);
  EXPECT_EQ(reduction.pending(), 1u);
}

TEST(ReductionTest, what_is_no_block_of_the_step_is_refused) {
  Reduction reduction(5, kFloats);
  std::vector<Reduction::Buffer> spare;
  for (const SlotBlock bad :
       {SlotBlock{0, 0}, {0, 3}, {0, 6}, {0, 7}, {1, 2}, {5, 1}, {8, 8}, {0x80000000u, 0x80000000u}}) {
    EXPECT_FALSE(reduction.add(bad, buffer_of(Values(kFloats)), {}, nullptr, spare).ok())
        << bad.first_slot << " + " << bad.slot_count;
  }
}

TEST(ReductionTest, threads_add_large_blocks_to_the_same_bits) {
  std::vector<float> left(3'000'000), right(left.size());
  Random random(2);
  for (std::size_t i = 0; i < left.size(); ++i) {
    left[i] = static_cast<float>(random.unit());
    right[i] = static_cast<float>(random.unit());
  }
  auto inline_sum = left;
  add_floats(inline_sum, right, nullptr);
  ThreadPool pool(2);
  add_floats(left, right, &pool);
  EXPECT_TRUE(left == inline_sum);
}

TEST(ReductionTest, the_halves_below_the_root_are_shown_once_and_are_the_same_however_the_step_is_cut) {
  Random random(5);
  for (const std::uint32_t slots : {2u, 3u, 6u, 8u, 13u, 32u}) {
    const auto values = slot_values(slots, slots);
    const std::uint32_t half = std::bit_ceil(slots) / 2;
    for (int cut = 0; cut < 20; ++cut) {
      auto blocks = random_blocks(slots, random);
      if (blocks.size() == 1) continue;
      unsigned shown = 0;
      Reduction reduction(slots, kFloats, [&](const HalfSum& left, const HalfSum& right) {
        ++shown;
        EXPECT_EQ(Values(left.values.begin(), left.values.end()), sum_of(values, 0, half));
        EXPECT_EQ(Values(right.values.begin(), right.values.end()), sum_of(values, half, half));
        EXPECT_EQ(left.sums.samples, half);
        EXPECT_EQ(right.sums.samples, slots - half);
      });
      std::vector<Reduction::Buffer> spare;
      for (const SlotBlock block : blocks) {
        const std::uint64_t samples = std::min(block.end(), slots) - block.first_slot;
        auto sum = buffer_of(sum_of(values, block.first_slot, block.tree_slots()));
        ASSERT_TRUE(reduction.add(block, std::move(sum), {.samples = samples}, nullptr, spare).ok());
      }
      EXPECT_TRUE(reduction.complete());
      EXPECT_EQ(shown, 1u) << slots << " slots";
    }
  }
}

}  // namespace
}  // namespace w5xde
