#include "lease/tuning.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

TEST(Tuning, bringing_a_node_in_for_free_is_short_beside_a_turn) {
  EXPECT_LT(kShortSeconds, kTurnSeconds / 10);
}

TEST(Tuning, an_exchange_is_short_beside_a_lease_that_is_worth_several_lanes) {
  EXPECT_LT(kExchangeSeconds, kShortSeconds);
}

}  // namespace
}  // namespace w5xde
