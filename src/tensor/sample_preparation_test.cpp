#include "w5xde/sample_preparation.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

TEST(SamplePreparation, says_what_is_to_be_done) {
  const SamplePreparation none, crop{.crop_pixels = 1}, flip{.flip = true},
      mean{.mean = {0}, .deviation = {1}};
  EXPECT_FALSE(none.any());
  for (const auto* moved : {&crop, &flip}) {
    EXPECT_TRUE(moved->any());
    EXPECT_TRUE(moved->augments());
    EXPECT_FALSE(moved->normalizes());
  }
  EXPECT_TRUE(mean.any());
  EXPECT_TRUE(mean.normalizes());
  EXPECT_FALSE(mean.augments());
}

}  // namespace
}  // namespace w5xde
