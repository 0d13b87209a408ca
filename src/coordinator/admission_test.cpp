#include "coordinator/admission.h"

#include <gtest/gtest.h>

namespace w5xde {
namespace {

// How many seconds the peer may be idle, up to `seconds_max`.
std::uint64_t seconds_allowed(Admission& admission, std::uint64_t seconds_max,
                              std::uint64_t model_bytes = 0) {
  for (std::uint64_t second = 1; second <= seconds_max; ++second) {
    if (admission.idle_too_long(model_bytes)) return second;
  }
  return seconds_max;
}

TEST(Admission, a_peer_that_says_nothing_and_an_observer_that_asks_nothing_are_dropped) {
  Admission admission;
  EXPECT_EQ(seconds_allowed(admission, 100), 5U);
  EXPECT_EQ(admission.reason(), "no hello for 5 s");
  admission.greet({.name = "o", .role = "observer"});
  EXPECT_EQ(seconds_allowed(admission, 100), 5U);
  EXPECT_EQ(admission.reason(), "no proof of an invitation for 5 s");
  admission.let_in(Role::observer);
  EXPECT_EQ(seconds_allowed(admission, 100), 60U);
  EXPECT_EQ(admission.reason(), "no question for 60 s");
  admission.asked();
  EXPECT_EQ(seconds_allowed(admission, 100), 60U);
}

TEST(Admission, a_node_waits_for_the_offer_as_long_as_it_takes_and_loads_a_large_model_in_time) {
  Admission admission;
  admission.greet({.name = "n", .role = "node"});
  EXPECT_EQ(seconds_allowed(admission, 10'000), 5U);
  admission.let_in(Role::node);
  EXPECT_EQ(seconds_allowed(admission, 10'000), 10'000U);
  admission.offer();
  EXPECT_EQ(seconds_allowed(admission, 10'000, 64 * 1024 * 100), 700U);
  EXPECT_EQ(admission.reason(), "no ready for 700 s");
  admission.become_ready({});
  EXPECT_EQ(seconds_allowed(admission, 10'000), 10'000U);
}

TEST(Admission, the_status_is_for_observers_and_owners_that_were_let_in) {
  for (const Role role : {Role::node, Role::observer, Role::owner}) {
    Admission admission;
    admission.greet({.name = "o", .role = "observer"});
    EXPECT_FALSE(admission.may_observe());
    admission.let_in(role);
    EXPECT_EQ(admission.may_observe(), role != Role::node);
  }
}

TEST(Admission, the_model_is_taken_once_and_only_between_offer_and_ready) {
  Admission admission;
  admission.greet({.name = "n", .role = "node"});
  EXPECT_FALSE(admission.take_model());
  admission.offer();
  EXPECT_TRUE(admission.take_model());
  EXPECT_FALSE(admission.take_model());
}

}  // namespace
}  // namespace w5xde
