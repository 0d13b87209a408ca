#include "lease/apportion.h"

#include <gtest/gtest.h>

#include <map>
#include <numeric>

namespace w5xde {
namespace {

std::map<NodeId, std::uint32_t> slots_of(const std::vector<Share>& shares) {
  std::map<NodeId, std::uint32_t> slots;
  for (const Share& share : shares) slots[share.node] = share.slots;
  return slots;
}

using Slots = std::map<NodeId, std::uint32_t>;

TEST(Apportion, a_node_that_is_twice_as_fast_gets_twice_as_many) {
  const auto shares =
      apportion({{.node = 1, .seconds_per_slot = 0.01}, {.node = 2, .seconds_per_slot = 0.02}}, 12);
  EXPECT_EQ(slots_of(shares), (Slots{{1, 8}, {2, 4}}));
}

TEST(Apportion, what_a_node_holds_already_counts) {
  const auto shares = apportion(
      {{.node = 1, .seconds_per_slot = 0.01, .ready_seconds = 0.06}, {.node = 2, .seconds_per_slot = 0.01}},
      10);
  EXPECT_EQ(slots_of(shares), (Slots{{1, 2}, {2, 8}})) << "both are done after 0.08 s";
}

TEST(Apportion, one_that_could_not_be_back_in_time_gets_none) {
  const auto shares = apportion(
      {{.node = 1, .seconds_per_slot = 0.01, .ready_seconds = 5}, {.node = 2, .seconds_per_slot = 0.01}}, 10);
  EXPECT_EQ(slots_of(shares), (Slots{{2, 10}}));
}

TEST(Apportion, differences_within_the_noise_do_not_cut_a_step_unevenly) {
  const auto shares = apportion(
      {{.node = 1, .seconds_per_slot = 0.01, .ready_seconds = 0.003}, {.node = 2, .seconds_per_slot = 0.01}},
      16);
  EXPECT_EQ(slots_of(shares), (Slots{{1, 8}, {2, 8}}));
}

TEST(Apportion, blocks_that_are_not_worth_an_exchange_go_to_others) {
  const auto shares = apportion({{.node = 1, .seconds_per_slot = 0.03, .slots_min = 4, .holds_some = true},
                                 {.node = 2, .seconds_per_slot = 0.01}},
                                16);
  EXPECT_EQ(slots_of(shares), (Slots{{1, 4}, {2, 12}}));
  const auto fewer = apportion({{.node = 1, .seconds_per_slot = 0.07, .slots_min = 4, .holds_some = true},
                                {.node = 2, .seconds_per_slot = 0.01}},
                               16);
  EXPECT_EQ(slots_of(fewer), (Slots{{1, 0}, {2, 16}}));
}

TEST(Apportion, every_slot_is_given_to_somebody) {
  for (std::uint32_t open = 0; open < 50; ++open) {
    std::vector<Share> shares;
    for (NodeId node = 0; node < 7; ++node)
      shares.push_back({.node = node, .seconds_per_slot = 0.01 * (1 + node), .ready_seconds = 0.02 * node});
    std::uint32_t given = 0;
    for (const Share& share : apportion(shares, open)) given += share.slots;
    EXPECT_EQ(given, open);
  }
  EXPECT_TRUE(apportion({}, 5).empty());
}

}  // namespace
}  // namespace w5xde
