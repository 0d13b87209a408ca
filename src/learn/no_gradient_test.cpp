#include "w5xde/no_gradient.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

// What a sum of contributions relies on.
TEST(NoGradientTest, a_sum_has_none_only_where_no_addend_has_one) {
  EXPECT_FALSE(has_gradient(kNoGradient));
  EXPECT_FALSE(has_gradient(kNoGradient + kNoGradient));
  for (float value : {0.0F, 1.0F, -1.0F, -1e-45F}) {
    EXPECT_TRUE(has_gradient(value));
    EXPECT_TRUE(has_gradient(kNoGradient + value) && has_gradient(value + kNoGradient));
    EXPECT_EQ(kNoGradient + value, value);
    EXPECT_TRUE(has_gradient(value + -value));
  }
  float chance = -0.0F;
  mark_gradient(chance);
  EXPECT_TRUE(has_gradient(chance));
}

}  // namespace
}  // namespace w5xde
