#include "node/coordinator_memory.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

using Access = SharedBlock::Access;

constexpr std::uint64_t kBytes = 8192;

TEST(CoordinatorMemoryTest, a_block_is_mapped_once_for_each_use) {
  CoordinatorMemory memory;
  const auto block = SharedBlock::create(kBytes).value();
  const auto first = memory.map(block->address(), Access::read, kBytes).value();
  EXPECT_EQ(memory.map(block->address(), Access::read, kBytes).value(), first);
  EXPECT_NE(memory.map(block->address(), Access::write, kBytes).value(), first);
  EXPECT_EQ(memory.blocks(), 2u);
}

TEST(CoordinatorMemoryTest, what_the_coordinator_has_let_go_of_is_let_go_of_when_another_comes) {
  CoordinatorMemory memory;
  auto block = SharedBlock::create(kBytes).value();
  std::weak_ptr<SharedBlock> mapped = memory.map(block->address(), Access::read, kBytes).value();
  block = SharedBlock::create(kBytes).value();
  EXPECT_FALSE(mapped.expired());
  (void)memory.map(block->address(), Access::read, kBytes);
  EXPECT_TRUE(mapped.expired());
  EXPECT_EQ(memory.blocks(), 1u);
}

TEST(CoordinatorMemoryTest, a_block_that_is_not_there_or_has_another_size_is_refused) {
  CoordinatorMemory memory;
  auto block = SharedBlock::create(kBytes).value();
  EXPECT_EQ(memory.map(block->address(), Access::read, kBytes + 4).error().message,
            "a shared block of 8192 bytes for a model of 8196");
  const auto address = block->address();
  block.reset();
  EXPECT_EQ(memory.map(address, Access::read, kBytes).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(memory.blocks(), 0u);
}

}  // namespace
}  // namespace w5xde
