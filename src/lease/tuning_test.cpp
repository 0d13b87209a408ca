#include "lease/tuning.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

TEST(Tuning, an_exchange_is_short_beside_a_lease_that_is_worth_several_lanes) {
  EXPECT_LT(kExchangeSeconds, kOneLaneSeconds);
}

}  // namespace
}  // namespace w5xde
