// Who works in a step, as the round hands out its leases.
#include "support/round_pool.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace w5xde {
namespace {

// Nodes whose exchanges take a while, on one link or on several: an answer is in when the link has brought
// parameters there and the contribution back.
class TeamRound : public testing::Test {
 protected:
  explicit TeamRound(const Round::Options& options = {.slots = 12, .fastest = true},
                     double swap_in_seconds = 1)
      : pool_(options), swap_in_seconds_(swap_in_seconds) {}

  void join(std::size_t nodes, double exchange, bool one_link) {
    exchange_ = exchange;
    one_link_ = one_link;
    for (NodeId id = 1; id <= nodes; ++id) {
      pool_.join(id, {.host = one_link ? "10.0.0.2" : "10.0.0." + std::to_string(id)}, swap_in_seconds_);
      pool_.round.set_exchange_seconds(id, exchange / 2);
      pool_.round.set_step_seconds(id, exchange);
      nodes_.push_back(id);
    }
  }

  // Everybody who has leases of the front step answers them, until it is done; returns how many that were.
  std::size_t step() {
    const std::uint64_t step = pool_.round.front_step();
    std::set<NodeId> busy;
    while (pool_.round.front_step() == step) {
      pool_.lease();
      std::map<NodeId, double> computing;
      std::vector<Grant> leases;
      for (const Grant& grant : pool_.out) {
        if (grant.step != step || grant.work != Work::train) continue;
        computing[grant.node] += grant.block.slot_count * slot_seconds(grant);
        leases.push_back(grant);
      }
      EXPECT_FALSE(leases.empty()) << "nobody has a lease of step " << step;
      if (leases.empty()) return 0;
      std::size_t exchanges = 0;
      double longest = 0;
      for (const auto& [node, seconds] : computing) {
        if (busy.insert(node).second) exchanges = one_link_ ? exchanges + 1 : 1;
        longest = std::max(longest, seconds);
      }
      pool_.now += duration_of(exchange_ * static_cast<double>(exchanges) + longest);
      for (const Grant& grant : leases) pool_.answer(grant.node, slot_seconds(grant));
    }
    return busy.size();
  }

  // Nodes that share machines of two cores, and a link.
  void join_machines(std::initializer_list<std::pair<NodeId, const char*>> nodes, double exchange) {
    exchange_ = exchange;
    one_link_ = true;
    for (const auto& [id, machine] : nodes) {
      pool_.join(id, {"node-" + std::to_string(id), machine, 2, "10.0.0.2"}, swap_in_seconds_);
      pool_.round.set_exchange_seconds(id, exchange / 2);
      pool_.round.set_step_seconds(id, exchange);
      nodes_.push_back(id);
    }
  }

  bool catching_up(NodeId node) const {
    return pool_.round.roster().at(node).standing == Standing::catching_up;
  }
  bool works(NodeId node) const { return pool_.round.roster().at(node).works(); }
  std::size_t working() const { return pool_.round.roster().working(); }
  bool limited() const { return pool_.round.roster().limited(); }

  RoundPool pool_;
  double swap_in_seconds_;
  std::vector<NodeId> nodes_;
  double exchange_ = 0;
  bool one_link_ = false;
  bool lanes_help_ = true;
  double slot_ = 0.01;  // seconds, in one lane

 private:
  double slot_seconds(const Grant& grant) const { return lanes_help_ ? slot_ / grant.lanes : slot_; }
};

TEST_F(TeamRound, one_node_finds_out_first_what_a_step_costs_where_bringing_nodes_in_is_expensive) {
  join(4, 1, true);
  EXPECT_EQ(std::set<NodeId>({pool_.leased.front().node}).size(), 1u);
  for (const Grant& grant : pool_.leased) EXPECT_EQ(grant.node, pool_.leased.front().node);
  EXPECT_EQ(working(), 1u);
}

TEST_F(TeamRound, behind_a_thin_link_one_node_has_the_whole_step_in_one_lease) {
  join(4, 1, true);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(step(), 1u) << i;
  EXPECT_TRUE(limited());
  std::size_t leases = 0;
  for (const Grant& grant : pool_.leased) leases += grant.step == 30 ? 1U : 0U;
  EXPECT_EQ(leases, 1u);
}

TEST_F(TeamRound, one_node_of_a_machine_has_all_of_its_cores) {
  join_machines({{1, "cellar"}, {2, "cellar"}, {3, "attic"}, {4, "attic"}}, 0.0001);
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(working(), 2u) << "four could, with cores of their own";
  EXPECT_NE(works(1), works(2));
  EXPECT_NE(works(3), works(4));
}

TEST_F(TeamRound, all_work_once_it_is_known_that_exchanges_are_cheap) {
  join(4, 0.0001, true);
  step();
  EXPECT_FALSE(limited());
  step();
  EXPECT_EQ(step(), 4u);
}

TEST_F(TeamRound, when_exchanges_become_far_cheaper_the_team_is_estimated_again) {
  join(4, 1, true);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(step(), 1u);
  exchange_ = 0.02;
  for (const NodeId id : nodes_) pool_.round.set_step_seconds(id, exchange_);
  step();  // is leased already
  step();
  EXPECT_EQ(step(), 2u) << "sqrt(0.12 / 0.02)";
}

TEST_F(TeamRound, nodes_with_links_of_their_own_all_work_in_the_end) {
  join(4, 0.06, false);
  for (int i = 0; i < 100; ++i) step();
  EXPECT_EQ(step(), 4u);
}

TEST_F(TeamRound, another_takes_the_place_of_one_that_leaves) {
  join(3, 1, true);
  for (int i = 0; i < 5; ++i) step();
  const NodeId worker = pool_.leased.back().node;
  pool_.leave(worker);
  std::erase(nodes_, worker);
  EXPECT_EQ(step(), 1u);
  EXPECT_NE(pool_.leased.back().node, worker);
  EXPECT_EQ(step(), 1u);
}

TEST_F(TeamRound, the_team_stays_while_others_are_no_better) {
  join(3, 1, true);
  for (int i = 0; i < 5; ++i) step();
  const NodeId worker = pool_.leased.back().node;
  pool_.leased.clear();
  for (int i = 0; i < 30; ++i) step();
  for (const Grant& grant : pool_.leased) EXPECT_EQ(grant.node, worker);
}

TEST_F(TeamRound, every_link_is_tried_once) {
  join(3, 1, false);
  for (int i = 0; i < 4; ++i) step();
  std::set<NodeId> tried;
  for (const Grant& grant : pool_.leased) tried.insert(grant.node);
  EXPECT_EQ(tried.size(), 3u);
}

TEST_F(TeamRound, one_with_a_much_better_link_is_taken_in_its_place) {
  join(3, 1, false);
  for (int i = 0; i < 5; ++i) step();
  const NodeId worker = pool_.leased.back().node;
  const NodeId better = worker == 3 ? 2 : 3;
  pool_.round.set_step_seconds(better, 0.2);
  for (int i = 0; i < 3; ++i) step();
  EXPECT_EQ(pool_.leased.back().node, better);
}

TEST_F(TeamRound, a_node_without_the_parameters_catches_up_before_it_works) {
  join(2, 1, false);
  for (int i = 0; i < 5; ++i) step();
  const NodeId worker = pool_.leased.back().node, other = worker == 1 ? 2 : 1;
  pool_.round.set_up_to_date(other, false);
  EXPECT_FALSE(catching_up(other)) << "it is not wanted";
  pool_.round.set_step_seconds(other, 0.1);
  pool_.leased.clear();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(step(), 1u);
  EXPECT_TRUE(catching_up(other));
  for (const Grant& grant : pool_.leased) EXPECT_EQ(grant.node, worker) << "the others go on meanwhile";
  pool_.round.set_up_to_date(other, true);
  for (int i = 0; i < 3; ++i) step();
  EXPECT_FALSE(catching_up(other));
  EXPECT_EQ(pool_.leased.back().node, other);
}

TEST_F(TeamRound, another_catches_up_in_the_place_of_one_that_takes_too_long_over_it) {
  for (const NodeId id : {1u, 2u}) {
    pool_.round.join(id, {.host = "10.0.0.2"}, swap_in_seconds_);
    pool_.round.set_up_to_date(id, false);
  }
  pool_.lease();
  EXPECT_TRUE(pool_.leased.empty());
  EXPECT_TRUE(catching_up(1));
  pool_.round.set_late(1);
  pool_.lease();
  EXPECT_FALSE(catching_up(1));
  EXPECT_TRUE(catching_up(2));
  pool_.round.set_up_to_date(2, true);
  pool_.lease();
  ASSERT_FALSE(pool_.leased.empty());
  EXPECT_EQ(pool_.leased.back().node, 2u);
  pool_.round.caught_up(1);
  EXPECT_NE(pool_.round.roster().at(1).standing, Standing::late) << "it is there after all";
}

TEST_F(TeamRound, a_trial_is_judged_by_steps_that_newcomers_worked_in) {
  join(4, 0.06, false);
  for (NodeId id = 2; id <= 4; ++id) pool_.round.set_up_to_date(id, false);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(step(), 1u) << i;
  EXPECT_TRUE(catching_up(2));
  for (NodeId id = 2; id <= 4; ++id) pool_.round.set_up_to_date(id, true);
  for (int i = 0; i < 50; ++i) step();
  EXPECT_EQ(step(), 4u) << "it paid";
}

TEST_F(TeamRound, where_all_work_those_who_have_the_parameters_do) {
  join(4, 0.0001, true);
  for (int i = 0; i < 3; ++i) step();
  ASSERT_FALSE(limited());
  pool_.round.set_up_to_date(2, false);
  EXPECT_TRUE(catching_up(2));
  for (int i = 0; i < 2; ++i) step();  // what it has leases of already
  EXPECT_EQ(step(), 3u);
  pool_.round.set_up_to_date(2, true);
  for (int i = 0; i < 2; ++i) step();
  EXPECT_EQ(step(), 4u);
}

TEST_F(TeamRound, the_team_evaluates_too) {
  join(3, 1, true);
  for (int i = 0; i < 5; ++i) step();
  const NodeId worker = pool_.leased.back().node;
  pool_.round.begin_evaluation(8, pool_.now);
  pool_.leased.clear();
  pool_.lease();
  for (const Grant& grant : pool_.leased) EXPECT_EQ(grant.node, worker);
}

// Of a model that costs nothing to send.
class SmallTeamRound : public TeamRound {
 protected:
  SmallTeamRound() : TeamRound({.slots = 12, .fastest = true}, 0) {}

  std::uint32_t slots_of(NodeId node) const {
    std::uint32_t slots = 0;
    for (const Grant& grant : pool_.leased) slots += grant.node == node ? grant.block.slot_count : 0;
    return slots;
  }
};

TEST_F(SmallTeamRound, a_machine_s_nodes_have_all_of_its_cores_in_turn_where_one_is_faster_than_two) {
  join_machines({{1, "cellar"}, {2, "cellar"}, {3, "cellar"}}, 0.02);
  for (int i = 0; i < 50; ++i) step();
  pool_.leased.clear();
  for (int i = 0; i < 200; ++i) EXPECT_EQ(step(), 1u) << i;
  for (const Grant& grant : pool_.leased) EXPECT_EQ(grant.lanes, 2u);
  for (const NodeId id : nodes_) EXPECT_NEAR(slots_of(id), 200 * 12 / 3, 17 * 12) << "but for a turn";
}

TEST_F(SmallTeamRound, as_many_as_a_machine_has_cores_work_where_steps_are_too_short_for_lanes) {
  slot_ = 0.0001;
  join_machines({{1, "cellar"}, {2, "cellar"}, {3, "cellar"}}, 0.0001);
  for (int i = 0; i < 3'000; ++i) step();
  EXPECT_FALSE(limited());
  EXPECT_EQ(step(), 2u);
}

TEST_F(SmallTeamRound, who_keeps_many_samples_stays) {
  join_machines({{1, "cellar"}, {2, "cellar"}, {3, "cellar"}}, 0.02);
  for (const NodeId id : nodes_) pool_.round.set_swap_in_seconds(id, 1);
  for (int i = 0; i < 50; ++i) step();
  const NodeId worker = pool_.leased.back().node;
  pool_.leased.clear();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(step(), 1u) << i;
  for (const Grant& grant : pool_.leased) EXPECT_EQ(grant.node, worker);
}

TEST_F(SmallTeamRound, more_work_again_when_lanes_turn_out_to_be_slow) {
  join_machines({{1, "cellar"}, {2, "cellar"}, {3, "cellar"}}, 0.02);
  for (int i = 0; i < 50; ++i) step();
  ASSERT_TRUE(limited());
  lanes_help_ = false;
  for (int i = 0; i < 200; ++i) step();
  EXPECT_FALSE(limited()) << "what two were measured to compute in is remembered";
  EXPECT_EQ(step(), 2u);
}

TEST_F(SmallTeamRound, another_has_the_cores_at_once_when_the_one_whose_turn_it_is_leaves) {
  join_machines({{1, "cellar"}, {2, "cellar"}, {3, "cellar"}}, 0.02);
  for (int i = 0; i < 50; ++i) step();
  const NodeId worker = pool_.leased.back().node;
  pool_.leave(worker);
  std::erase(nodes_, worker);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(step(), 1u) << i;
  for (const NodeId id : nodes_) EXPECT_TRUE(slots_of(id) > 0);
}

TEST(RoundRoster, in_async_all_work) {
  RoundPool pool({.mode = Mode::async, .slots = 4, .fastest = true});
  for (const NodeId id : {1u, 2u, 3u}) pool.join(id, {}, 1);
  EXPECT_EQ(pool.round.roster().working(), 3u);
  pool.asynchronous = true;
  for (const NodeId id : {1u, 2u, 3u}) pool.answer(id);
  pool.round.begin_evaluation(6, pool.now);
  pool.leased.clear();
  pool.lease();
  std::set<NodeId> evaluating;
  for (const Grant& grant : pool.leased) evaluating.insert(grant.node);
  EXPECT_EQ(evaluating.size(), 3u);
}

}  // namespace
}  // namespace w5xde
