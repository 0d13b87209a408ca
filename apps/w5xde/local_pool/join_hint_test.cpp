#include "local_pool/invitation.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

constexpr Duration kMoment = std::chrono::milliseconds(500);

TEST(InvitationTest, is_repeated_as_long_as_nobody_is_in) {
  Invitation invitation;
  Instant now{};
  EXPECT_TRUE(invitation.due(false, now));
  for (int again = 0; again < 3; ++again) {
    EXPECT_FALSE(invitation.due(false, now + kMoment));
    EXPECT_FALSE(invitation.due(false, now + Invitation::kEvery - kMoment));
    now += Invitation::kEvery;
    EXPECT_TRUE(invitation.due(false, now));
  }
}

TEST(InvitationTest, is_said_at_once_when_the_last_node_has_left_and_never_while_one_is_in) {
  Invitation invitation;
  Instant now{};
  EXPECT_TRUE(invitation.due(false, now));
  EXPECT_FALSE(invitation.due(true, now += kMoment));
  EXPECT_FALSE(invitation.due(true, now + Invitation::kEvery));
  EXPECT_TRUE(invitation.due(false, now += kMoment));
  EXPECT_FALSE(invitation.due(false, now + kMoment));
}

}  // namespace
}  // namespace w5xde
