#include "w5xde/block_layout.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

constexpr std::uint64_t kFloatsMax = 1 << 20;

TEST(BlockLayoutTest, bad_layouts_are_refused) {
  EXPECT_EQ(BlockLayout::make({{"a", Shape{1}}, {"a", Shape{1}}}, kFloatsMax).error().kind,
            ErrorKind::invalid);
  EXPECT_EQ(BlockLayout::make({{"", Shape{1}}}, kFloatsMax).error().kind, ErrorKind::invalid);
  EXPECT_EQ(BlockLayout::make({{"a", Shape{1 << 20}}, {"b", Shape{1}}}, kFloatsMax).error().kind,
            ErrorKind::overloaded);
  EXPECT_EQ(BlockLayout::make({{"a", Shape{std::int64_t{1} << 57}}}, kFloatsMax).error().kind,
            ErrorKind::overloaded);
}

}  // namespace
}  // namespace w5xde
