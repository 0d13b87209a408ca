#include "lease/round.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "base/random.h"
#include "support/round_pool.h"

namespace w5xde {
namespace {

using std::chrono::milliseconds;

TEST(Round, nodes_that_share_cores_take_turns) {
  RoundPool pool({.slots = 40});
  for (NodeId node = 0; node < 10; ++node) {
    pool.round.join(node, {.machine = "cellar", .lanes = 2});
    pool.round.set_exchange_seconds(node, 0.040);
  }
  pool.lease();
  std::vector<NodeId> nodes(10);
  std::iota(nodes.begin(), nodes.end(), 0);
  run_steps(pool, nodes, 2000);
  std::map<std::uint64_t, std::set<NodeId>> by_step;
  std::map<NodeId, std::uint32_t> slots;
  for (const Grant& grant : pool.leased) {
    by_step[grant.step].insert(grant.node);
    slots[grant.node] += grant.block.slot_count;
  }
  for (std::uint64_t step = 20; step < 2000; ++step) EXPECT_EQ(by_step[step].size(), 2u) << step;
  for (const NodeId node : nodes) EXPECT_NEAR(slots[node], 8000, 400) << node;
}

TEST(Round, a_lease_says_how_many_slots_at_once) {
  RoundPool pool({.slots = 32});
  pool.join(1, {"", "cellar", 8, "10.0.0.1"});
  EXPECT_EQ(pool.leased.front().lanes, 8u);
  EXPECT_GE(pool.leased.front().block.slot_count, 8u) << "even before it is measured";
  pool.join(2, {"", "attic", 4, "10.0.0.2"});
  pool.join(3, {"", "attic", 4, "10.0.0.2"});
  run_steps(pool, std::vector<NodeId>{1, 2, 3}, 20);
  std::map<NodeId, std::uint32_t> lanes;
  for (const Grant& grant : pool.leased) lanes[grant.node] = grant.lanes;
  EXPECT_EQ(lanes, (std::map<NodeId, std::uint32_t>{{1, 8}, {2, 2}, {3, 2}}));
}

TEST(Round, a_step_that_is_given_out_bit_by_bit_leaves_no_lane_idle) {
  RoundPool pool({.slots = 32});
  const std::vector<NodeId> nodes = {1, 2};
  for (const NodeId node : nodes) {
    pool.join(node, {"", "machine " + std::to_string(node), 8, ""});
    pool.round.set_exchange_seconds(node, 1e-5);
  }
  // Now twice as fast, now half: who could tell what it is going to do gets little at a time.
  for (int i = 0; pool.commits < 40; ++i) {
    pool.now += milliseconds(8);
    for (const NodeId node : nodes) (void)pool.answer(node, i % 2 == 0 ? 0.002 : 0.0005);
  }
  std::size_t leases = 0, idle = 0;
  for (const Grant& grant : pool.leased) {
    if (grant.step < 10) continue;
    ++leases;
    if (grant.block.slot_count < 8) ++idle;
  }
  EXPECT_GT(leases, 2 * 30u) << "bit by bit";
  EXPECT_EQ(idle, 0u);
}

TEST(Round, the_slots_of_a_lost_node_go_to_those_whose_turn_it_is) {
  RoundPool pool({.slots = 8});
  for (NodeId node = 0; node < 4; ++node) pool.round.join(node, {.machine = "cellar", .lanes = 1});
  pool.lease();
  const std::vector<NodeId> nodes = {0, 1, 2, 3};
  run_steps(pool, nodes, 3);
  pool.leave(pool.out.front().node);
  run_steps(pool, nodes, 3);
  EXPECT_EQ(pool.committed.size(), 6u * 8u);
}

TEST(Round, awaits_the_answer_to_a_lease_of_the_front_step_until_it_has_one) {
  RoundPool pool({.slots = 1});
  pool.join(1);
  ASSERT_EQ(pool.out.size(), 2u) << "this step's, and the next one's ahead of it";
  const LeaseId first = pool.out[0].lease, ahead = pool.out[1].lease;
  EXPECT_TRUE(pool.round.awaits(1, first));
  EXPECT_FALSE(pool.round.awaits(1, ahead));
  EXPECT_FALSE(pool.round.awaits(2, first));
  EXPECT_FALSE(pool.round.awaits(1, 77));
  pool.answer(1);
  EXPECT_FALSE(pool.round.awaits(1, first));
  EXPECT_TRUE(pool.round.awaits(1, ahead));
  pool.leave(1);
  EXPECT_FALSE(pool.round.awaits(1, ahead));
}

TEST(Round, leases_the_next_step_ahead_but_no_further) {
  RoundPool pool({.slots = 4});
  pool.join(1);
  pool.answer(1);
  std::set<std::uint64_t> steps;
  for (const Grant& grant : pool.out) steps.insert(grant.step);
  EXPECT_EQ(steps, (std::set<std::uint64_t>{0, 1}));
}

TEST(Round, leases_a_lost_node_s_slots_again) {
  RoundPool pool({.slots = 4});
  pool.join(1);
  pool.join(2);
  pool.leave(1);
  EXPECT_EQ(pool.round.slots_leased_again(), 2u);
  const std::vector<NodeId> nodes = {2};
  run_steps(pool, nodes, 3);
  EXPECT_EQ(pool.committed.size(), 12u);
}

TEST(Round, leases_a_frozen_node_s_slots_to_idle_ones_and_drops_its_answer) {
  RoundPool pool({.slots = 8});
  const std::vector<NodeId> all = {1, 2}, awake = {2};
  for (const NodeId node : all) pool.join(node);
  run_steps(pool, all, 5);
  run_steps(pool, awake, 3);
  EXPECT_TRUE(pool.round.roster().at(1).standing == Standing::late);
  EXPECT_GT(pool.round.slots_leased_again(), 0u);
  // It wakes up and answers what it had.
  while (pool.answer(1)) pool.now += milliseconds(1);
  EXPECT_GT(pool.round.duplicates_dropped(), 0u);
  EXPECT_FALSE(pool.round.roster().at(1).standing == Standing::late);
  run_steps(pool, all, 5);
  EXPECT_EQ(pool.committed.size(), pool.commits * 8);
}

// A slot that is kept for a node which never answers would be kept for ever.
TEST(Round, what_is_open_is_not_left_to_a_node_that_never_answers) {
  RoundPool pool({.slots = 10});
  pool.join(1);
  pool.join(2);
  for (int turn = 0; turn < 1000 && pool.commits == 0; ++turn) {
    (void)pool.answer(2);
    pool.now += std::chrono::milliseconds(20);
    pool.lease();
  }
  EXPECT_GT(pool.commits, 0u);
}

TEST(Round, nobody_waits_for_a_newcomer_s_first_answer) {
  RoundPool pool({.slots = 8});
  const std::vector<NodeId> known = {1, 2}, all = {1, 2, 3};
  for (const NodeId node : known) pool.join(node);
  run_steps(pool, known, 5);
  pool.join(3);
  const Instant joined = pool.now;
  run_steps(pool, known, 10);
  EXPECT_LT(pool.now - joined, milliseconds(100)) << "it does not answer";
  EXPECT_GT(pool.slots_of(3, 6) + pool.slots_of(3, 7), 0u) << "it was asked";
  std::uint32_t asked = 0;
  for (std::uint64_t step = 0; step < 20; ++step) asked += pool.slots_of(3, step);
  EXPECT_LE(asked, 8u) << "and gets nothing more until it does";
  // Its first answer comes too late to count, and says how fast it is all the same.
  while (pool.answer(3)) {
  }
  EXPECT_GT(pool.round.roster().at(3).pace.seconds_per_slot, 0);
  run_steps(pool, all, 10);
  EXPECT_GT(pool.slots_of(3, pool.round.front_step() - 1), 0u);
  EXPECT_GE(pool.committed.size(), pool.commits * 8);
}

TEST(Round, ends_with_a_shorter_step_when_the_run_has_so_many_slots) {
  RoundPool pool({.slots = 8, .slots_total = 20});
  pool.join(1);
  while (pool.answer(1)) pool.now += milliseconds(1);
  EXPECT_TRUE(pool.round.finished());
  EXPECT_EQ(pool.commits, 3u);
  EXPECT_EQ(pool.committed.size(), 20u);
}

TEST(Round, evaluates_with_every_node) {
  RoundPool pool({.slots = 2, .slots_total = 2});
  const std::vector<NodeId> nodes = {1, 2};
  for (const NodeId node : nodes) pool.join(node);
  run_steps(pool, nodes, 1);
  pool.round.begin_evaluation(10, pool.now);
  pool.lease();
  EXPECT_FALSE(pool.round.evaluation_complete());
  while (pool.answer(1) | pool.answer(2)) pool.now += milliseconds(1);
  EXPECT_TRUE(pool.round.evaluation_complete());
  EXPECT_EQ(pool.committed.size(), 2u);
}

TEST(Round, knows_an_answer_that_nobody_asked_for) {
  Round round({.slots = 4});
  round.join(1);
  const Grant grant = round.grants({}).front();
  EXPECT_EQ(round.answer(1, grant.lease + 99, grant.block, {0}, {}), Round::Verdict::unknown);
  EXPECT_EQ(round.answer(1, grant.lease, {0, 4}, {0}, {}), Round::Verdict::unknown);
  EXPECT_EQ(round.answer(7, grant.lease, grant.block, {0}, {}), Round::Verdict::unknown);
  EXPECT_EQ(round.answer(1, grant.lease, grant.block, {0}, {}), Round::Verdict::accepted);
}

TEST(Round, leases_rejected_slots_again) {
  RoundPool pool({.slots = 2});
  pool.join(1);
  const Grant grant = pool.out.front();
  EXPECT_EQ(pool.round.reject(1, grant.lease, grant.block), Round::Rejection::leased_again);
  EXPECT_EQ(pool.round.reject(1, grant.lease, grant.block), Round::Rejection::unknown);
  std::erase_if(pool.out, [&](const Grant& other) { return other.lease == grant.lease; });
  pool.lease();
  const std::vector<NodeId> nodes = {1};
  run_steps(pool, nodes, 2);
  EXPECT_EQ(pool.committed.size(), 4u);
}

TEST(Round, slots_that_are_refused_go_to_another_node_where_there_is_one) {
  for (const Mode mode : {Mode::sync, Mode::async}) {
    for (const bool fastest : {false, true}) {
      RoundPool pool({.mode = mode, .slots = 8, .fastest = fastest});
      pool.asynchronous = mode == Mode::async;
      pool.join(1);
      pool.join(2);
      const Grant refused = pool.out.front();
      EXPECT_EQ(pool.round.reject(refused.node, refused.lease, refused.block, Round::Next::another),
                Round::Rejection::leased_again);
      const auto grants = pool.round.grants(pool.now);
      const auto again = std::ranges::find_if(grants, [&](const Grant& grant) {
        return grant.step == refused.step && grant.block == refused.block;
      });
      ASSERT_NE(again, grants.end());
      EXPECT_NE(again->node, refused.node);
    }
  }
}

TEST(Round, alone_a_node_is_asked_again_for_slots_that_it_refused) {
  RoundPool pool({.slots = 2});
  pool.join(1);
  const Grant refused = pool.out.front();
  pool.round.reject(1, refused.lease, refused.block, Round::Next::another);
  const auto grants = pool.round.grants(pool.now);
  ASSERT_FALSE(grants.empty());
  EXPECT_EQ(grants.front().block, refused.block);
}

TEST(Round, a_rejected_answer_to_a_block_that_another_node_has_answered_is_settled) {
  Instant now{};
  Round round({.slots = 2});
  round.join(1);
  const Grant slow = round.grants(now).front();
  round.join(2);
  now += std::chrono::seconds(10);
  const auto grants = round.grants(now);
  const auto again = std::ranges::find(grants, slow.step, &Grant::step);
  ASSERT_NE(again, grants.end());
  ASSERT_EQ(round.answer(2, again->lease, again->block, {0.1}, now), Round::Verdict::accepted);
  EXPECT_EQ(round.reject(1, slow.lease, slow.block), Round::Rejection::settled);
}

TEST(Round, drains_an_async_pool_while_it_is_held) {
  RoundPool pool({.mode = Mode::async, .slots = 4});
  pool.asynchronous = true;
  pool.join(1);
  for (int i = 0; i < 10; ++i) pool.answer(1);
  pool.round.hold(true);
  while (pool.answer(1)) pool.now += milliseconds(1);
  EXPECT_TRUE(pool.round.drained());
  // Every step that was begun is whole: the cursor is one number.
  EXPECT_EQ(pool.committed.size(), pool.round.front_step() * 4);
  pool.round.hold(false);
  pool.lease();
  EXPECT_TRUE(pool.answer(1));
}

TEST(Round, paused_an_async_pool_evaluates_and_trains_no_more) {
  RoundPool pool({.mode = Mode::async, .slots = 4});
  pool.asynchronous = true;
  pool.join(1);
  pool.round.pause_training(true);
  pool.round.begin_evaluation(2, pool.now);
  while (pool.answer(1)) pool.now += milliseconds(1);
  EXPECT_TRUE(pool.round.evaluation_complete());
  EXPECT_TRUE(pool.out.empty());
  pool.round.pause_training(false);
  pool.lease();
  EXPECT_TRUE(pool.answer(1));
}

// Whatever joins, leaves, freezes and answers late: every slot of the run is committed exactly once.
void survives(Mode mode) {
  const auto seed = *rc::gen::arbitrary<std::uint64_t>();
  Random random(seed);
  const auto slots = static_cast<std::uint32_t>(1 + random.below(20));
  const std::uint64_t total = 1 + random.below(200);
  // What a run that was cut off has committed already.
  SlotRanges ahead;
  std::uint64_t slots_ahead = 0;
  if (mode == Mode::async && random.below(2) == 0) {
    for (std::uint64_t first = random.below(30); first < total;
         first = ahead.back().second + 1 + random.below(30)) {
      ahead.emplace_back(first, std::min(total, first + 1 + random.below(30)));
      slots_ahead += ahead.back().second - first;
    }
  }
  RoundPool pool({.mode = mode,
                  .slots = slots,
                  .slots_total = total,
                  .slots_ahead = ahead,
                  .fastest = random.below(2) == 0});
  pool.asynchronous = mode == Mode::async;
  NodeId next = 1;
  std::vector<NodeId> nodes;
  for (int event = 0; event < 20000 && !pool.round.finished(); ++event) {
    pool.now += milliseconds(random.below(40));
    const std::uint64_t draw = random.below(20);
    if (nodes.empty() || (draw == 0 && nodes.size() < 9)) {
      nodes.push_back(next);
      pool.join(next, {.host = std::to_string(next % 3)});
      pool.round.set_exchange_seconds(next, random.unit() * 0.01);
      pool.round.set_step_seconds(next++, random.unit() * 0.1);
    } else if (draw == 1) {
      const std::size_t gone = random.below(nodes.size());
      pool.leave(nodes[gone]);
      nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(gone));
    } else {
      // The first of them is often frozen.
      const std::size_t who = std::max<std::size_t>(random.below(nodes.size()), random.below(2));
      if (who < nodes.size()) pool.answer(nodes[who], 0.001 * static_cast<double>(1 + nodes[who] % 5));
      pool.lease();
    }
  }
  RC_ASSERT(pool.round.finished());
  RC_ASSERT(pool.committed.size() == total - slots_ahead);
}

// More nodes than are all looked at with every answer.
TEST(Round, a_large_pool_commits_every_slot_once_too) {
  for (const Mode mode : {Mode::sync, Mode::async}) {
    RoundPool pool({.mode = mode, .slots = 800, .slots_total = 20 * 800});
    pool.asynchronous = mode == Mode::async;
    std::vector<NodeId> nodes(200);
    std::iota(nodes.begin(), nodes.end(), 1);
    for (const NodeId node : nodes) {
      pool.join(node);
      pool.round.set_exchange_seconds(node, 1e-5);
    }
    Random random(7);
    for (int event = 0; event < 200'000 && !pool.round.finished(); ++event) {
      pool.now += std::chrono::microseconds(random.below(20));
      // One of them is frozen from the start, and another every now and then.
      const auto node = static_cast<NodeId>(2 + random.below(199));
      if (random.below(50) > 0 || node % 10 > 0) pool.answer(node, 0.001 * (0.5 + random.unit()));
      if (event % 100 == 0) pool.lease();
    }
    EXPECT_TRUE(pool.round.finished());
    EXPECT_EQ(pool.committed.size(), 20u * 800u);
  }
}

RC_GTEST_PROP(Round, commits_every_slot_once_whatever_happens_in_sync, ()) {
  survives(Mode::sync);
}

RC_GTEST_PROP(Round, commits_every_slot_once_whatever_happens_in_async, ()) {
  survives(Mode::async);
}

TEST(Round, an_answer_to_the_last_evaluation_does_not_count_in_the_next) {
  Instant now{};
  Round round({});
  round.hold(true);  // nothing to train: evaluations only
  round.join(1);
  round.begin_evaluation(2, now);
  const auto first = round.grants(now);
  ASSERT_EQ(first.size(), 1u);
  round.join(2);
  now += std::chrono::seconds(10);
  const auto again = round.grants(now);
  ASSERT_EQ(again.size(), 1u);
  ASSERT_EQ(again[0].node, 2u);
  EXPECT_EQ(round.answer(2, again[0].lease, again[0].block, {0.1}, now), Round::Verdict::accepted);
  ASSERT_TRUE(round.evaluation_complete());
  round.end_evaluation();

  round.begin_evaluation(2, now);
  const auto next = round.grants(now);
  ASSERT_FALSE(next.empty());
  EXPECT_EQ(round.answer(1, first[0].lease, first[0].block, {0.1}, now), Round::Verdict::duplicate);
  EXPECT_FALSE(round.evaluation_complete()) << "with the numbers of an older version";
  for (const Grant& grant : next) {
    EXPECT_EQ(round.answer(grant.node, grant.lease, grant.block, {0.1}, now), Round::Verdict::accepted);
  }
  EXPECT_TRUE(round.evaluation_complete());
}

TEST(Round, where_halves_are_asked_for_no_lease_is_of_a_whole_step) {
  for (const std::uint32_t slots : {1u, 2u, 6u, 8u, 32u}) {
    RoundPool pool({.slots = slots, .steps_total = 40, .halves = true});
    pool.join(1);
    while (pool.answer(1)) pool.lease();
    EXPECT_TRUE(pool.round.finished());
    EXPECT_EQ(pool.commits, 40u);
    const std::uint32_t half = std::max(1u, std::bit_ceil(slots) / 2);
    for (const Grant& grant : pool.leased) EXPECT_LE(grant.block.slot_count, half);
  }
}

TEST(Round, no_lease_has_more_slots_than_fit_in_a_frame) {
  for (const Mode mode : {Mode::sync, Mode::async}) {
    RoundPool pool({.mode = mode, .slots = 22, .slots_total = 100, .lease_slots_max = 4});
    pool.asynchronous = mode == Mode::async;
    pool.join(1);
    while (pool.answer(1, 1e-6)) pool.now += milliseconds(1);
    EXPECT_TRUE(pool.round.finished());
    EXPECT_EQ(pool.committed.size(), 100u);
    pool.round.begin_evaluation(9, pool.now, 2);
    pool.lease();
    while (pool.answer(1)) pool.now += milliseconds(1);
    EXPECT_TRUE(pool.round.evaluation_complete());
    for (const Grant& grant : pool.leased)
      EXPECT_LE(grant.block.slot_count, grant.work == Work::train ? 4u : 2u);
  }
}

TEST(Round, steps_that_are_not_open_yet_can_be_made_larger) {
  RoundPool pool({.slots = 4, .slots_total = 50});
  pool.join(1);
  pool.round.grow(3, 8);
  while (pool.answer(1)) pool.lease();
  EXPECT_TRUE(pool.round.finished());
  EXPECT_EQ(pool.commits, 8u) << "three of 4 slots, four of 8, and one of 6";
}

}  // namespace
}  // namespace w5xde
