#include "lease/roster.h"

#include <gtest/gtest.h>

#include <set>

namespace w5xde {
namespace {

using std::chrono::milliseconds;

class RosterTurns : public testing::Test {
 protected:
  void rotate(std::uint64_t leases_min = 1) { roster_.rotate(now_, leases_min); }
  void join(NodeId node, const std::string& machine, std::uint32_t lanes) {
    roster_.join(node, {"node-" + std::to_string(node), machine, lanes, ""}, 0);
    nodes_.insert(node);
  }
  void leased(NodeId node, std::uint32_t slots) { Roster::leased(roster_.at(node), slots); }
  std::set<NodeId> working() const {
    std::set<NodeId> working;
    for (const auto& [node, member] : roster_.members()) {
      if (member.works()) working.insert(node);
    }
    return working;
  }

  Roster roster_{{}};
  Instant now_ = Instant() + std::chrono::hours(1);
  std::set<NodeId> nodes_;
};

TEST_F(RosterTurns, nobody_rests_on_a_machine_with_cores_for_all) {
  for (const NodeId node : {1u, 2u}) join(node, "a", 2);
  join(3, "b", 1);
  join(4, "", 1);  // nobody knows where
  join(5, "", 1);
  join(6, "gpus", 0);
  join(7, "gpus", 0);
  for (int i = 0; i < 3; ++i, now_ += milliseconds(100)) {
    rotate();
    EXPECT_EQ(working(), nodes_);
  }
}

TEST_F(RosterTurns, those_who_work_share_their_machine_s_lanes) {
  for (const NodeId node : {1u, 2u, 3u}) join(node, "a", 8);
  join(4, "", 4);      // nobody knows where: nobody else's
  join(5, "gpus", 0);  // no cores
  const auto lanes = [&](NodeId node) { return roster_.lanes(roster_.at(node)); };
  EXPECT_EQ(lanes(1), 2u) << "none has a part of a core";
  EXPECT_EQ(lanes(4), 4u);
  EXPECT_EQ(lanes(5), 1u);
  Roster::set_late(roster_.at(3));
  EXPECT_EQ(lanes(1), 4u);
  Roster::set_late(roster_.at(1));
  EXPECT_EQ(lanes(2), 8u);
  for (NodeId node = 10; node < 20; ++node) join(node, "a", 8);
  EXPECT_EQ(lanes(2), 1u);
}

TEST_F(RosterTurns, ten_nodes_on_two_cores_compute_equally_many_slots) {
  for (NodeId node = 0; node < 10; ++node) join(node, "a", 2);
  std::map<NodeId, int> leases;
  for (int i = 0; i < 1000; ++i, now_ += milliseconds(10)) {
    rotate();
    ASSERT_EQ(working().size(), 2u);
    for (const NodeId node : working()) {
      leased(node, 4);
      ++leases[node];
    }
  }
  for (NodeId node = 0; node < 10; ++node) EXPECT_NEAR(leases[node], 200, 5) << node;
}

TEST_F(RosterTurns, a_turn_is_not_over_before_its_time_nor_before_its_leases) {
  for (NodeId node = 0; node < 3; ++node) join(node, "a", 1);
  rotate(2);
  ASSERT_EQ(working(), std::set<NodeId>{0});
  leased(0, 1);
  now_ += milliseconds(100);
  rotate(2);
  EXPECT_EQ(working(), std::set<NodeId>{0});
  leased(0, 1);
  rotate(2);
  EXPECT_EQ(working(), std::set<NodeId>{1});
  for (int i = 0; i < 10; ++i) leased(1, 1);
  rotate(2);
  EXPECT_EQ(working(), std::set<NodeId>{1});
}

TEST_F(RosterTurns, the_turn_of_a_node_that_leaves_or_is_late_passes_to_another_at_once) {
  for (NodeId node = 0; node < 4; ++node) join(node, "a", 2);
  rotate();
  ASSERT_EQ(working(), (std::set<NodeId>{0, 1}));
  roster_.leave(0);
  nodes_.erase(0);
  rotate();
  EXPECT_EQ(working().size(), 2u);
  Roster::set_late(roster_.at(1));
  rotate();
  EXPECT_EQ(working(), (std::set<NodeId>{2, 3}));
  Roster::set_late(roster_.at(2));
  rotate();
  EXPECT_EQ(working(), std::set<NodeId>{3});
  for (const NodeId node : {1u, 2u}) roster_.clear_late(roster_.at(node));
  rotate();
  EXPECT_EQ(working().size(), 2u);
}

TEST_F(RosterTurns, a_node_that_joins_later_is_owed_nothing_for_the_time_before) {
  for (NodeId node = 0; node < 2; ++node) join(node, "a", 1);
  for (int i = 0; i < 100; ++i, now_ += milliseconds(60)) {
    rotate();
    for (const NodeId node : working()) leased(node, 1);
  }
  join(2, "a", 1);
  std::map<NodeId, int> leases;
  for (int i = 0; i < 30; ++i, now_ += milliseconds(60)) {
    rotate();
    for (const NodeId node : working()) {
      leased(node, 1);
      ++leases[node];
    }
  }
  EXPECT_NEAR(leases[2], 10, 1);
}

TEST_F(RosterTurns, a_node_that_stands_by_says_why) {
  for (NodeId node = 0; node < 3; ++node) join(node, "a", 2);
  rotate();
  EXPECT_EQ(roster_.at(2).standing, Standing::standby);
  EXPECT_EQ(roster_.reason(2), "2 nodes have the cores of this machine; its nodes work in turns");
  EXPECT_EQ(roster_.reason(0), "");
  Roster::set_late(roster_.at(0));
  EXPECT_EQ(roster_.reason(0), "it takes too long: it gets nothing new before it answers");
  roster_.set_leaving(1);
  EXPECT_EQ(roster_.reason(1), "it said that it leaves");
  rotate();
  EXPECT_EQ(working(), std::set<NodeId>{2}) << "whoever leaves gets nothing more";
}

TEST(Roster, one_node_that_has_all_cores_is_named) {
  Roster roster({.fastest = true});
  for (NodeId node = 1; node <= 2; ++node)
    roster.join(node, {"node-" + std::to_string(node), "cellar", 2, ""}, 1);
  roster.choose_team(8);
  EXPECT_TRUE(roster.limited());
  EXPECT_EQ(name_of(roster.at(2).standing), "standby");
  EXPECT_EQ(roster.reason(2), "node-1 computes with all cores of this machine");
}

TEST(Roster, nodes_that_work_in_turns_are_said_to_take_turns) {
  Roster roster({.fastest = true});
  for (NodeId node = 1; node <= 3; ++node) roster.join(node, {"", "", 1, "10.0.0.2"}, 1);
  for (NodeId node = 1; node <= 3; ++node) {
    roster.set_up_to_date(node, true);
    roster.at(node).pace.seconds_per_slot = 0.001;
    roster.at(node).pace.step_seconds = 1;
  }
  roster.choose_team(8);
  ASSERT_TRUE(roster.limited());
  EXPECT_EQ(roster.reason(3), "1 of 3 nodes work at a time: more at once would make a step longer");
  // From now on it costs nothing to let another one work.
  for (NodeId node = 1; node <= 3; ++node) roster.at(node).pace.swap_in_seconds = 0;
  roster.step_done(1, 8);
  EXPECT_EQ(roster.reason(3),
            "1 of 3 nodes work at a time: more at once would make a step longer; they take turns");
}

TEST(Roster, where_links_are_thin_it_says_that_more_would_take_longer) {
  Roster roster({.fastest = true});
  for (NodeId node = 1; node <= 3; ++node) roster.join(node, {"", "", 1, "10.0.0.2"}, 1);
  roster.choose_team(8);
  EXPECT_EQ(roster.reason(2), "one node finds out first what a step costs");
  roster.at(1).pace.seconds_per_slot = 0.001;
  roster.at(1).pace.step_seconds = 1;
  roster.choose_team(8);
  EXPECT_EQ(roster.reason(2), "1 of 3 nodes work at a time: more at once would make a step longer");
  roster.set_up_to_date(2, false);
  EXPECT_EQ(roster.at(2).standing, Standing::standby) << "it is not wanted";
}

}  // namespace
}  // namespace w5xde
