#include "w5xde/version.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace w5xde {
namespace {

TEST(VersionTest, it_is_three_numbers) {
  EXPECT_EQ(std::ranges::count(kVersion, '.'), 2);
  EXPECT_EQ(kVersion.find_first_not_of("0123456789."), std::string_view::npos);
}

}  // namespace
}  // namespace w5xde
