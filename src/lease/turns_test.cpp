#include "lease/turns.h"

#include <gtest/gtest.h>

#include <set>

namespace w5xde {
namespace {

using std::chrono::milliseconds;

class TurnsTest : public testing::Test {
 protected:
  void advance(std::uint64_t leases_min = 1) {
    turns_.advance(now_, leases_min, [this](NodeId node) { return ill_.contains(node); });
  }
  void join(NodeId node, const std::string& machine, std::uint32_t lanes) {
    turns_.join(node, {machine, lanes});
    nodes_.insert(node);
  }
  std::set<NodeId> working() const {
    std::set<NodeId> working;
    for (const NodeId node : nodes_) {
      if (!turns_.rests(node) && !ill_.contains(node)) working.insert(node);
    }
    return working;
  }

  Turns turns_;
  Instant now_ = Instant() + std::chrono::hours(1);
  std::set<NodeId> nodes_, ill_;
};

TEST_F(TurnsTest, nobody_rests_on_a_machine_with_cores_for_all) {
  for (const NodeId node : {1u, 2u}) join(node, "a", 2);
  join(3, "b", 1);
  join(4, "", 1);  // nobody knows where
  join(5, "", 1);
  join(6, "gpus", 0);
  join(7, "gpus", 0);
  for (int i = 0; i < 3; ++i, now_ += milliseconds(100)) {
    advance();
    EXPECT_EQ(working(), nodes_);
  }
}

TEST_F(TurnsTest, fewer_work_at_once_if_so_told_and_all_have_their_turn) {
  for (const NodeId node : {1u, 2u, 3u}) join(node, "a", 2);
  join(4, "b", 4);
  join(5, "", 1);
  EXPECT_EQ(turns_.workers([](NodeId) { return false; }), 4u);
  turns_.set_at_once(1);
  std::set<NodeId> worked;
  for (int i = 0; i < 3; ++i, now_ += milliseconds(25)) {
    advance();
    EXPECT_EQ(working().size(), 3u) << "one of a, and two that are alone";
    for (const NodeId node : working()) {
      turns_.leased(node, 8);
      worked.insert(node);
    }
  }
  EXPECT_EQ(worked, nodes_);
  EXPECT_EQ(turns_.workers([](NodeId node) { return node <= 2; }), 3u) << "as many as could otherwise";
  turns_.set_at_once(0);
  advance(100);
  EXPECT_EQ(working().size(), 4u) << "at once, not when the turn is over";
}

TEST_F(TurnsTest, those_who_work_share_their_machine_s_lanes) {
  for (const NodeId node : {1u, 2u, 3u}) join(node, "a", 8);
  join(4, "", 4);      // nobody knows where: nobody else's
  join(5, "gpus", 0);  // no cores
  std::set<NodeId> works = {1, 2, 4, 5};
  const auto lanes = [&](NodeId node) {
    return turns_.lanes(node, [&](NodeId other) { return works.contains(other); });
  };
  EXPECT_EQ(lanes(1), 4u);
  EXPECT_EQ(lanes(4), 4u);
  EXPECT_EQ(lanes(5), 1u);
  works = {1, 2, 3};
  EXPECT_EQ(lanes(1), 2u) << "none has a part of a core";
  works = {2};
  EXPECT_EQ(lanes(2), 8u);
  for (NodeId node = 10; node < 20; ++node) {
    join(node, "a", 8);
    works.insert(node);
  }
  EXPECT_EQ(lanes(2), 1u);
}

TEST_F(TurnsTest, ten_nodes_on_two_cores_come_to_the_same_number_of_slots) {
  for (NodeId node = 0; node < 10; ++node) join(node, "a", 2);
  std::map<NodeId, int> leases;
  for (int i = 0; i < 1000; ++i, now_ += milliseconds(10)) {
    advance();
    ASSERT_EQ(working().size(), 2u);
    for (const NodeId node : working()) {
      turns_.leased(node, 4);
      ++leases[node];
    }
  }
  for (NodeId node = 0; node < 10; ++node) EXPECT_NEAR(leases[node], 200, 5) << node;
}

TEST_F(TurnsTest, a_turn_is_not_over_before_its_time_nor_before_its_leases) {
  for (NodeId node = 0; node < 3; ++node) join(node, "a", 1);
  advance(2);
  ASSERT_EQ(working(), std::set<NodeId>{0});
  turns_.leased(0, 1);
  now_ += milliseconds(100);
  advance(2);
  EXPECT_EQ(working(), std::set<NodeId>{0});
  turns_.leased(0, 1);
  advance(2);
  EXPECT_EQ(working(), std::set<NodeId>{1});
  for (int i = 0; i < 10; ++i) turns_.leased(1, 1);
  advance(2);
  EXPECT_EQ(working(), std::set<NodeId>{1});
}

TEST_F(TurnsTest, the_turn_of_a_node_that_leaves_or_falls_ill_passes_to_another_at_once) {
  for (NodeId node = 0; node < 4; ++node) join(node, "a", 2);
  advance();
  ASSERT_EQ(working(), (std::set<NodeId>{0, 1}));
  turns_.leave(0);
  nodes_.erase(0);
  advance();
  EXPECT_EQ(working().size(), 2u);
  ill_ = {1};
  advance();
  EXPECT_EQ(working(), (std::set<NodeId>{2, 3}));
  ill_ = {1, 2};
  advance();
  EXPECT_EQ(working(), std::set<NodeId>{3});
  ill_ = {};
  advance();
  EXPECT_EQ(working().size(), 2u);
}

TEST_F(TurnsTest, a_late_comer_is_not_owed_the_time_before) {
  for (NodeId node = 0; node < 2; ++node) join(node, "a", 1);
  for (int i = 0; i < 100; ++i, now_ += milliseconds(60)) {
    advance();
    for (const NodeId node : working()) turns_.leased(node, 1);
  }
  join(2, "a", 1);
  std::map<NodeId, int> leases;
  for (int i = 0; i < 30; ++i, now_ += milliseconds(60)) {
    advance();
    for (const NodeId node : working()) {
      turns_.leased(node, 1);
      ++leases[node];
    }
  }
  EXPECT_NEAR(leases[2], 10, 1);
}

}  // namespace
}  // namespace w5xde
