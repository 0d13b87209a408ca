// The result of a pool does not depend on who is in it.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/fault_schedule.h"
#include "sim/sim_pool.h"

namespace w5xde {
namespace {

void expect_balanced(const Summary& summary) {
  EXPECT_EQ(summary.audit.samples_committed, summary.audit.samples_expected);
  EXPECT_GT(summary.audit.samples_committed, 0u);
}

// 180 slots: four epochs of 41 full ones and one of 16, then 12 full ones.
constexpr std::uint64_t kSamples = 4 * 1000 + 12 * 24;

TEST(PoolTest, it_comes_to_the_same_bits_as_a_plain_loop_for_1_3_and_7_nodes) {
  const std::string expected = plain_hash(sim_config());
  for (const unsigned nodes : {1u, 3u, 7u}) {
    SimPool pool(sim_config());
    pool.add_nodes(nodes);
    ASSERT_EQ(pool.run(), "ok") << nodes;
    const Summary summary = pool.coordinator().summary();
    EXPECT_EQ(summary.parameters_hash, expected) << nodes << " nodes";
    expect_balanced(summary);
    EXPECT_EQ(summary.samples, kSamples);
    EXPECT_EQ(summary.steps, 30u);
    EXPECT_EQ(summary.batches, 180u);
    EXPECT_EQ(summary.nodes, nodes);
    std::uint64_t batches = 0;
    for (const auto& node : summary.per_node) batches += node.batches;
    EXPECT_EQ(batches, 180u);
  }
}

TEST(PoolTest, nodes_that_share_a_core_take_turns_and_parameters_go_to_one_at_a_time) {
  const auto data = open_dataset("synthetic", Split::train, 1).value();
  const std::uint64_t samples_bytes = kSamples * data->sample_bytes();
  // What was sent beside the samples, which is parameters for the most part.
  const auto bytes_beside_samples = [&](bool turns) {
    RunConfig config = sim_config();
    config.turns = turns;
    config.transport.who_works = WhoWorks::all;  // turns alone decide who works
    SimPool pool(config);
    for (int i = 0; i < 6; ++i) pool.add_node({.machine = {.id = "cellar", .cores = 1}});
    EXPECT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    EXPECT_EQ(summary.parameters_hash, plain_hash(sim_config())) << turns;
    expect_balanced(summary);
    EXPECT_EQ(summary.nodes, 6u);
    EXPECT_GT(summary.bytes.sent, samples_bytes);
    return summary.bytes.sent - samples_bytes;
  };
  const std::uint64_t in_turns = bytes_beside_samples(true), at_once = bytes_beside_samples(false);
  // A step takes one version of 64 floats, and the heads of its frames: to a second node it would be twice
  // that.
  EXPECT_LT(in_turns, 30u * (64 * sizeof(float) + 320));
  EXPECT_LT(in_turns, at_once);
}

TEST(PoolTest, the_bits_follow_the_seed_and_what_travels_through_a_codec_is_the_same) {
  RunConfig config = sim_config();
  config.transport.codec = parse_lossless_choice("zstd:1").value();
  SimPool pool(config);
  pool.add_nodes(2);
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(sim_config()));
  config.seed = 12;
  EXPECT_NE(plain_hash(config), plain_hash(sim_config()));
}

TEST(PoolTest, nodes_that_vanish_at_any_moment_change_no_bit) {
  const std::string expected = plain_hash(sim_config());
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimPool pool(sim_config());
    pool.add_nodes(3);
    FaultSchedule faults(pool, seed);
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    EXPECT_EQ(summary.parameters_hash, expected);
    expect_balanced(summary);
    EXPECT_EQ(summary.nodes, 3u) << "one that comes back is the same node";
    EXPECT_GE(faults.killed(), 4u) << "the run was over before it was disturbed enough";
    EXPECT_GT(pool.stays(), 3u);
  }
}

TEST(PoolTest, slow_links_cut_links_and_flipped_bits_change_no_bit) {
  RunConfig config = sim_config();
  config.steps = 20;
  const std::string expected = plain_hash(config);
  using std::chrono::milliseconds;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimPool pool(config);
    pool.add_node({.link = LinkShape{.flip_every_bytes = 5000, .cut_after_bytes = 9000}, .seed = seed + 100});
    pool.start();
    // Alone, for beside others it may be given too little for anything to happen to it.
    ASSERT_TRUE(pool.run_until([&] { return pool.stays() > 1 && pool.bits_flipped() > 0; }));
    pool.add_node({.link = LinkShape{.delay = milliseconds(3)}, .seed = seed});
    pool.add_node({.link = LinkShape{.flip_every_bytes = 5000}, .seed = seed + 200});
    pool.add_node(
        {.link = LinkShape{.delay = milliseconds(1), .flip_every_bytes = 9000, .cut_after_bytes = 20000},
         .seed = seed + 300});
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    EXPECT_EQ(summary.parameters_hash, expected);
    expect_balanced(summary);
  }
}

TEST(PoolTest, a_coordinator_that_vanishes_goes_on_from_its_checkpoint_to_the_same_bits) {
  RunConfig config = sim_config();
  config.checkpoint_seconds = 1e-6;
  const std::string expected = plain_hash(config);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimPool pool(config);
    pool.add_nodes(3);
    pool.start();
    Random random(seed);
    for (std::uint64_t step = 3; step < 25; step += 5 + random.below(5)) {
      ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().step >= step; }));
      pool.restart_coordinator();
      EXPECT_GE(pool.coordinator().status().step + 2, step) << "a checkpoint of every step was asked for";
    }
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    EXPECT_EQ(summary.parameters_hash, expected);
    expect_balanced(summary);
    EXPECT_EQ(summary.samples, kSamples);
  }
}

TEST(PoolTest, a_run_that_is_stopped_says_so_and_is_resumed_to_the_same_bits) {
  SimPool pool(sim_config());
  pool.add_nodes(2);
  pool.start();
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().step >= 10; }));
  pool.coordinator().stop("told to");
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_TRUE(pool.coordinator().stopped_early());
  EXPECT_LT(pool.coordinator().summary().steps, 30u);
  expect_balanced(pool.coordinator().summary());
  pool.restart_coordinator();
  EXPECT_GE(pool.coordinator().status().step, 10u);
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_FALSE(pool.coordinator().stopped_early());
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, plain_hash(sim_config()));
}

TEST(PoolTest, an_async_run_commits_every_sample_once_whoever_comes_and_goes) {
  RunConfig config = sim_config();
  config.mode = Mode::async;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimPool pool(config);
    pool.add_nodes(3);
    FaultSchedule faults(pool, seed);
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    expect_balanced(summary);
    EXPECT_EQ(summary.samples, kSamples);
    EXPECT_EQ(summary.batches, 180u);
    EXPECT_GE(faults.killed(), 4u) << "the run was over before it was disturbed enough";
  }
}

TEST(PoolTest, what_an_evaluation_comes_to_does_not_depend_on_the_number_of_nodes) {
  RunConfig config = sim_config();
  config.steps = 10;
  config.evaluate_every = 4;
  // 20 slots, so that they are cut otherwise for every number of nodes.
  const auto data = open_dataset("random:10,10,5000", Split::train, 3).value();
  std::optional<EvaluationStats> expected;
  for (const unsigned nodes : {1u, 3u, 7u}) {
    SimPool pool(config);
    pool.evaluate_on(data);
    pool.add_nodes(nodes);
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    EXPECT_EQ(summary.parameters_hash, plain_hash(config));
    ASSERT_TRUE(summary.evaluation.has_value());
    if (!expected) expected = summary.evaluation;
    EXPECT_EQ(summary.evaluation->loss, expected->loss) << nodes << " nodes";
    EXPECT_EQ(summary.evaluation->accuracy, expected->accuracy) << nodes << " nodes";
    EXPECT_GT(summary.evaluation->loss, 0.0);
  }
}

}  // namespace
}  // namespace w5xde
