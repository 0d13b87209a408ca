#include "base/hex.h"

#include <gtest/gtest.h>

#include <array>

namespace w5xde {
namespace {

TEST(HexTest, bytes_become_digits_and_digits_bytes) {
  const std::array<std::byte, 3> bytes = {std::byte{0}, std::byte{0xff}, std::byte{0x7a}};
  EXPECT_EQ(hex_text(bytes), "00ff7a");
  std::array<std::byte, 3> back{};
  EXPECT_TRUE(parse_hex("00ff7a", back));
  EXPECT_EQ(back, bytes);
}

TEST(HexTest, what_is_not_exactly_the_digits_is_refused) {
  std::array<std::byte, 2> bytes{};
  for (const char* text : {"", "00f", "00ff0", "00fg", "0x12", "-1ff", " 1ff"})
    EXPECT_FALSE(parse_hex(text, bytes)) << text;
}

}  // namespace
}  // namespace w5xde
