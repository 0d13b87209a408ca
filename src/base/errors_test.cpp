#include "base/errors.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

TEST(ErrorsTest, a_message_is_formatted_and_a_plain_one_is_taken_as_it_is) {
  EXPECT_EQ(invalid("{} of {}", 1, "many").to_string(), "invalid: 1 of many");
  EXPECT_EQ(corrupt("{:02x}", 10).to_string(), "corrupt: 0a");
  EXPECT_EQ(incompatible("version {}", 2).to_string(), "incompatible: version 2");
  EXPECT_EQ(overloaded("{} bytes", 3).to_string(), "overloaded: 3 bytes");
  EXPECT_EQ(invalid("{}").to_string(), "invalid: {}");
}

}  // namespace
}  // namespace w5xde
