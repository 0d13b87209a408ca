#include "local_pool/join_hint.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

constexpr Duration kMoment = std::chrono::milliseconds(500);

TEST(JoinHintTest, is_repeated_as_long_as_nobody_is_in) {
  JoinHint hint;
  Instant now{};
  EXPECT_TRUE(hint.due(false, now));
  for (int again = 0; again < 3; ++again) {
    EXPECT_FALSE(hint.due(false, now + kMoment));
    EXPECT_FALSE(hint.due(false, now + JoinHint::kEvery - kMoment));
    now += JoinHint::kEvery;
    EXPECT_TRUE(hint.due(false, now));
  }
}

TEST(JoinHintTest, is_said_at_once_when_the_last_node_has_left_and_never_while_one_is_in) {
  JoinHint hint;
  Instant now{};
  EXPECT_TRUE(hint.due(false, now));
  EXPECT_FALSE(hint.due(true, now += kMoment));
  EXPECT_FALSE(hint.due(true, now + JoinHint::kEvery));
  EXPECT_TRUE(hint.due(false, now += kMoment));
  EXPECT_FALSE(hint.due(false, now + kMoment));
}

}  // namespace
}  // namespace w5xde
