#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "lease/round.h"
#include "support/round_pool.h"

namespace w5xde {
namespace {

using std::chrono::milliseconds;

TEST(RoundStragglers, a_late_node_that_answers_badly_is_asked_again_where_nobody_else_is) {
  RoundPool pool({.slots = 1});
  pool.join(1);
  const Grant refused = pool.out.front();
  pool.now += std::chrono::seconds(10);
  pool.lease();
  EXPECT_TRUE(pool.round.roster().at(1).standing == Standing::late);
  pool.round.reject(1, refused.lease, refused.block, Round::Next::another);
  const auto grants = pool.round.grants(pool.now);
  ASSERT_FALSE(grants.empty());
  EXPECT_EQ(grants.front().block, refused.block);
}

TEST(RoundStragglers, a_block_that_its_helper_never_answers_goes_to_a_third_node) {
  RoundPool pool({.slots = 1});
  pool.join(1);
  std::set<NodeId> asked;
  for (NodeId next = 2; next < 5; ++next) {
    pool.join(next);
    pool.now += std::chrono::seconds(10);
    pool.lease();
  }
  for (const Grant& grant : pool.leased) {
    if (grant.step == 0) asked.insert(grant.node);
  }
  EXPECT_EQ(asked, (std::set<NodeId>{1, 2, 3, 4}));
}

TEST(RoundStragglers, a_block_of_a_late_node_that_another_one_fails_at_goes_to_a_third) {
  RoundPool pool({.slots = 1});
  pool.join(1);
  pool.now += std::chrono::seconds(10);
  pool.join(2);
  const auto again = std::ranges::find(pool.leased, NodeId{2}, &Grant::node);
  ASSERT_NE(again, pool.leased.end());
  EXPECT_EQ(pool.round.reject(2, again->lease, again->block, Round::Next::another),
            Round::Rejection::leased_again);
  pool.join(3);
  const auto third = std::ranges::find(pool.leased, NodeId{3}, &Grant::node);
  ASSERT_NE(third, pool.leased.end());
  EXPECT_EQ(third->step, 0u);
  const auto to_second = [](const Grant& grant) { return grant.node == 2 && grant.step == 0; };
  EXPECT_EQ(std::ranges::count_if(pool.leased, to_second), 1) << "it was asked in vain already";
}

TEST(RoundStragglers, no_evaluation_waits_for_a_node_that_says_nothing) {
  for (const Mode mode : {Mode::sync, Mode::async}) {
    // Node 1 never answers. What it holds is computed by node 2, so that nobody asks for it any more.
    RoundPool pool({.mode = mode, .slots = 4, .slots_total = 4});
    pool.asynchronous = mode == Mode::async;
    pool.join(1);
    pool.join(2);
    for (int i = 0; i < 200; ++i) {
      pool.now += milliseconds(100);
      pool.lease();
      (void)pool.answer(2);
    }
    ASSERT_EQ(pool.committed.size(), 4u);
    pool.round.begin_evaluation(2, pool.now);
    for (int i = 0; i < 200; ++i) {
      pool.now += milliseconds(100);
      pool.lease();
      (void)pool.answer(2);
    }
    EXPECT_TRUE(pool.round.evaluation_complete());
  }
}

}  // namespace
}  // namespace w5xde
