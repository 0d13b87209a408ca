#include "lease/team_size.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace w5xde {
namespace {

// A pool whose steps take as long as they would: exchanges one after the other on each link, and the
// computing by as many nodes as take part.
class TeamPool {
 public:
  TeamPool(TeamSize::Pool pool, std::size_t links) : pool_(pool), links_(links) {
    if (pool_.machines == 0) pool_.machines = pool_.workers;
  }

  double step_seconds(std::size_t nodes) const {
    const double exchanges = std::max(1.0, static_cast<double>(nodes) / static_cast<double>(links_));
    return pool_.exchange_seconds * exchanges + seen(nodes).compute_seconds / static_cast<double>(nodes);
  }
  // One that has to share its cores with the others takes longer.
  TeamSize::Pool seen(std::size_t nodes) const {
    TeamSize::Pool pool = pool_;
    if (share_cores) pool.compute_seconds *= static_cast<double>(nodes);
    return pool;
  }
  void run(std::size_t steps) {
    for (std::size_t i = 0; i < steps; ++i) {
      const std::size_t nodes = size();
      ++steps_with[nodes];
      team.step_done(step_seconds(nodes), seen(nodes));
    }
  }
  std::size_t size() const { return team.size() == 0 ? pool_.workers : team.size(); }
  void compute(double seconds) { pool_.compute_seconds = seconds; }
  void exchange(double seconds) { pool_.exchange_seconds = seconds; }

  TeamSize team;
  bool share_cores = false;
  std::map<std::size_t, std::size_t> steps_with;

 private:
  TeamSize::Pool pool_;
  std::size_t links_;  // that there really are
};

TEST(TeamSizeTest, all_take_part_as_long_as_nothing_speaks_against_it) {
  TeamPool pool({.workers = 8, .links = 8, .compute_seconds = 1, .exchange_seconds = 0.01}, 8);
  EXPECT_EQ(pool.team.size(), 0u);
  pool.run(1'000);
  EXPECT_EQ(pool.team.size(), 0u);
  EXPECT_EQ(pool.steps_with[8], 1'000u) << "where exchanges are cheap nothing is tried";
}

TEST(TeamSizeTest, behind_one_thin_link_one_node_computes_alone) {
  TeamPool pool({.workers = 4, .links = 1, .compute_seconds = 0.1, .exchange_seconds = 1}, 1);
  pool.team.probe();
  EXPECT_EQ(pool.team.size(), 1u);
  pool.team.guess({.workers = 4, .machines = 4, .links = 1, .compute_seconds = 0.1, .exchange_seconds = 1});
  pool.run(1'000);
  EXPECT_EQ(pool.steps_with[1], 1'000u) << "where more could not pay they are not tried";
}

TEST(TeamSizeTest, nodes_behind_links_of_their_own_are_found_out_by_trying) {
  TeamPool pool({.workers = 8, .links = 8, .compute_seconds = 4, .exchange_seconds = 1}, 8);
  pool.team.guess({.workers = 8, .machines = 8, .links = 8, .compute_seconds = 4, .exchange_seconds = 1});
  EXPECT_EQ(pool.team.size(), 2u) << "as if they shared one";
  pool.run(100);
  EXPECT_EQ(pool.team.size(), 0u);
}

TEST(TeamSizeTest, a_link_that_all_share_unseen_is_found_out_by_trying) {
  TeamPool pool({.workers = 8, .links = 8, .compute_seconds = 4, .exchange_seconds = 1}, 1);
  pool.run(100);
  const std::size_t before = pool.steps_with[2];
  pool.run(1'000);
  EXPECT_GT(pool.steps_with[2] - before, 900u) << "what failed is tried ever more rarely";
}

TEST(TeamSizeTest, more_nodes_of_one_machine_compute_no_faster) {
  TeamPool pool({.workers = 4, .machines = 1, .links = 1, .compute_seconds = 4, .exchange_seconds = 0.1}, 1);
  pool.share_cores = true;
  pool.team.probe();
  pool.team.guess(pool.seen(1));
  pool.run(1'000);
  EXPECT_EQ(pool.steps_with[1], 1'000u);
}

TEST(TeamSizeTest, one_of_each_machine_has_all_its_cores_where_that_is_no_slower) {
  TeamPool pool(
      {.workers = 64, .machines = 2, .links = 2, .compute_seconds = 0.004, .exchange_seconds = 1e-5}, 2);
  pool.share_cores = true;
  pool.run(2'000);
  EXPECT_EQ(pool.team.size(), 2u) << "at once, not by halves";
  EXPECT_EQ(pool.steps_with[32] + pool.steps_with[16] + pool.steps_with[4], 0u);
}

TEST(TeamSizeTest, machines_that_come_later_are_one_of_each_too) {
  TeamSize team;
  team.guess({.workers = 4, .machines = 1, .links = 1, .compute_seconds = 1, .exchange_seconds = 0.01});
  ASSERT_EQ(team.size(), 1u);
  team.step_done(1,
                 {.workers = 20, .machines = 5, .links = 5, .compute_seconds = 1, .exchange_seconds = 0.01});
  EXPECT_EQ(team.size(), 5u);
  team.step_done(1,
                 {.workers = 8, .machines = 8, .links = 5, .compute_seconds = 1, .exchange_seconds = 0.01});
  EXPECT_EQ(team.size(), 0u) << "steps are too short for lanes: all";
  team.step_done(1,
                 {.workers = 8, .machines = 2, .links = 5, .compute_seconds = 1, .exchange_seconds = 0.01});
  EXPECT_EQ(team.size(), 2u);
}

TEST(TeamSizeTest, machines_that_come_later_are_tried_first_where_exchanges_are_dear) {
  TeamSize team;
  team.guess({.workers = 4, .machines = 1, .links = 1, .compute_seconds = 1, .exchange_seconds = 0.5});
  ASSERT_EQ(team.size(), 1u);
  team.step_done(1, {.workers = 8, .machines = 2, .links = 1, .compute_seconds = 1, .exchange_seconds = 0.5});
  EXPECT_EQ(team.size(), 1u);
}

TEST(TeamSizeTest, a_machine_s_nodes_work_side_by_side_where_its_lanes_are_clearly_slower) {
  for (const double slower : {1.05, 1.4}) {
    TeamSize team;
    const auto step = [&] {
      const bool one = team.size() == 1;
      const double seconds = 0.002 * (one ? slower : 1);
      team.step_done(seconds + 1e-4, {.workers = 2,
                                      .machines = 1,
                                      .links = 1,
                                      .compute_seconds = seconds * (one ? 1 : 2),
                                      .exchange_seconds = 1e-4});
      return one;
    };
    int ones = 0;
    for (int i = 0; i < 20'000; ++i) ones += step() ? 1 : 0;
    if (slower < 1.1) {
      EXPECT_GT(ones, 18'000) << "what is hardly slower may be noise";
    } else {
      EXPECT_LT(ones, 2'000);
    }
  }
}

TEST(TeamSizeTest, nodes_that_share_cores_unseen_are_found_out_by_how_long_they_compute) {
  TeamPool pool({.workers = 4, .links = 1, .compute_seconds = 0.5, .exchange_seconds = 0.1}, 1);
  pool.share_cores = true;
  pool.team.probe();
  pool.team.guess(pool.seen(1));
  ASSERT_EQ(pool.team.size(), 2u) << "as if each had its own";
  pool.run(30);
  EXPECT_EQ(pool.team.size(), 1u);
  pool.run(1'000);
  EXPECT_GT(pool.steps_with[1], 900u);
}

TEST(TeamSizeTest, a_hopeless_trial_ends_with_its_first_step) {
  TeamPool pool({.workers = 2, .links = 2, .compute_seconds = 0.5, .exchange_seconds = 1}, 1);
  pool.team.guess({.workers = 2, .machines = 2, .links = 2, .compute_seconds = 0.5, .exchange_seconds = 1});
  ASSERT_EQ(pool.team.size(), 1u);
  pool.run(12);
  EXPECT_EQ(pool.team.size(), 1u);
  EXPECT_EQ(pool.steps_with[2], 3u) << "two that are skipped, and one";
}

TEST(TeamSizeTest, one_step_that_was_preempted_does_not_decide_a_trial) {
  const TeamSize::Pool figures{
      .workers = 2, .machines = 2, .links = 2, .compute_seconds = 0.08, .exchange_seconds = 0.02};
  for (const std::size_t preempted : {0u, 3u, 5u}) {
    TeamSize team;
    team.probe();
    std::size_t steps_of_two = 0;
    for (int i = 0; i < 60; ++i) {
      const bool two = team.size() != 1;
      team.step_done(!two ? 0.1 : steps_of_two == preempted ? 0.25 : 0.06, figures);
      if (two) ++steps_of_two;
    }
    EXPECT_EQ(team.size(), 0u) << "the step after " << preempted << " was preempted";
    EXPECT_GT(steps_of_two, 30u) << "at the first trial";
  }
}

TEST(TeamSizeTest, when_steps_come_to_take_another_time_it_is_tried_again_soon) {
  TeamPool pool({.workers = 8, .links = 8, .compute_seconds = 1, .exchange_seconds = 1}, 1);
  pool.run(600);
  ASSERT_EQ(pool.team.size(), 1u);
  pool.exchange(0.002);  // by a codec, say
  pool.run(60);
  EXPECT_EQ(pool.team.size(), 0u);
}

TEST(TeamSizeTest, steps_that_were_disturbed_say_nothing) {
  TeamPool pool({.workers = 2, .links = 2, .compute_seconds = 1, .exchange_seconds = 0.01}, 2);
  const TeamSize::Pool figures{.workers = 2, .links = 2, .compute_seconds = 1, .exchange_seconds = 0.01};
  for (int i = 0; i < 300; ++i) {
    pool.team.disturbed();
    pool.team.step_done(60, figures);  // an evaluation, say
    pool.run(5);
  }
  EXPECT_EQ(pool.steps_with[2], 1'500u);
}

TEST(TeamSizeTest, a_team_of_all_nodes_is_no_limit) {
  TeamSize team;
  team.guess({.workers = 3, .machines = 3, .links = 3, .compute_seconds = 100, .exchange_seconds = 0.1});
  EXPECT_EQ(team.size(), 0u);
  team.guess({.workers = 1, .machines = 1, .links = 1, .compute_seconds = 1, .exchange_seconds = 100});
  EXPECT_EQ(team.size(), 0u);
}

}  // namespace
}  // namespace w5xde
