// A global batch that grows, grows at the same steps whoever is in the pool.
#include <gtest/gtest.h>

#include "sim/fault_schedule.h"
#include "sim/sim_pool.h"

namespace w5xde {
namespace {

// From 64 samples a step to 512: the model is where it is drawn to soon, and what is left is noise.
RunConfig growing_config() {
  RunConfig config = sim_config();
  config.batch = 8;
  config.slots = 8;
  config.steps = 100;
  config.optimizer.learning_rate = 0.1;
  config.growth = {.policy = BatchPolicy::grows, .samples_max = 512, .every = 4};
  return config;
}

void expect_grown(const Summary& summary) {
  ASSERT_TRUE(summary.batch_growth.has_value());
  const auto& growths = summary.batch_growth->growths;
  ASSERT_EQ(growths.size(), 3u);
  std::uint64_t samples = 64;
  for (const BatchGrowth& growth : growths) {
    EXPECT_EQ(growth.samples_before, samples);
    EXPECT_EQ(growth.samples, samples *= 2);
    EXPECT_FALSE(growth.noise_scale < static_cast<double>(growth.samples));
  }
  EXPECT_EQ(summary.global_batch, 512u);
  EXPECT_EQ(summary.audit.samples_committed, summary.audit.samples_expected);
}

// Slots of the run, had it grown as the summary says.
std::uint64_t slots_of(const RunConfig& config, const Summary& summary) {
  std::uint64_t slots = 0, size = config.slots;
  for (std::uint64_t step = 0; step < summary.steps; ++step) {
    for (const BatchGrowth& growth : summary.batch_growth->growths) {
      if (growth.step == step) size = growth.samples / config.batch;
    }
    slots += size;
  }
  return slots;
}

TEST(GrowthTest, it_comes_to_the_same_bits_as_a_plain_loop_for_1_3_and_7_nodes) {
  const std::string expected = plain_hash(growing_config());
  for (const unsigned nodes : {1u, 3u, 7u}) {
    SCOPED_TRACE(std::to_string(nodes) + " nodes");
    SimPool pool(growing_config());
    pool.add_nodes(nodes);
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    expect_grown(summary);
    EXPECT_EQ(summary.parameters_hash, expected);
    EXPECT_EQ(summary.steps, 100u) << "an end in steps is one, however large they are";
    EXPECT_EQ(summary.batches, slots_of(growing_config(), summary));
  }
  RunConfig fixed = growing_config();
  fixed.growth = {};
  EXPECT_NE(plain_hash(fixed), expected);
}

TEST(GrowthTest, nodes_that_vanish_at_any_moment_change_no_bit) {
  const std::string expected = plain_hash(growing_config());
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimPool pool(growing_config());
    pool.add_nodes(3);
    FaultSchedule faults(pool, seed);
    ASSERT_EQ(pool.run(), "ok");
    expect_grown(pool.coordinator().summary());
    EXPECT_EQ(pool.coordinator().summary().parameters_hash, expected);
    EXPECT_GE(faults.killed(), 4u) << "the run was over before it was disturbed enough";
  }
}

TEST(GrowthTest, a_coordinator_that_vanishes_goes_on_from_its_checkpoint_to_the_same_bits) {
  RunConfig config = growing_config();
  config.checkpoint_seconds = 1e-6;
  const std::string expected = plain_hash(config);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimPool pool(config);
    pool.add_nodes(3);
    pool.start();
    Random random(seed);
    for (std::uint64_t step = 2; step < 90; step += 3 + random.below(6)) {
      ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().step >= step; }));
      pool.restart_coordinator();
    }
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    expect_grown(summary);
    EXPECT_EQ(summary.parameters_hash, expected);
    EXPECT_EQ(summary.steps, 100u);
    EXPECT_EQ(summary.batches, slots_of(config, summary));
  }
}

TEST(GrowthTest, an_end_in_epochs_holds_to_the_sample) {
  RunConfig config = growing_config();
  config.steps = 0;
  config.epochs = 9;
  std::string expected;
  for (const unsigned nodes : {1u, 5u}) {
    SCOPED_TRACE(std::to_string(nodes) + " nodes");
    SimPool pool(config);
    pool.add_nodes(nodes);
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    expect_grown(summary);
    EXPECT_EQ(summary.samples, 9'000u);
    EXPECT_EQ(summary.batches, 9u * 125);
    EXPECT_LT(summary.steps, 9'000u / 64);
    EXPECT_EQ(pool.coordinator().status().steps_total, summary.steps);
    if (expected.empty()) expected = summary.parameters_hash;
    EXPECT_EQ(summary.parameters_hash, expected);
  }
}

TEST(GrowthTest, a_stateless_lossy_codec_changes_the_bits_but_not_by_who_computes) {
  RunConfig config = growing_config();
  config.transport.gradient_codec = parse_gradient_choice("bf16").value();
  std::string expected;
  for (const unsigned nodes : {1u, 4u}) {
    SimPool pool(config);
    pool.add_nodes(nodes);
    ASSERT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    EXPECT_FALSE(summary.batch_growth->growths.empty());
    if (expected.empty()) expected = summary.parameters_hash;
    EXPECT_EQ(summary.parameters_hash, expected) << nodes << " nodes";
  }
}

TEST(GrowthTest, its_state_is_told_while_it_runs) {
  SimPool pool(growing_config());
  pool.add_nodes(2);
  pool.start();
  EXPECT_EQ(pool.coordinator().status().global_batch, 64u);
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().global_batch == 512; }));
  EXPECT_EQ(pool.coordinator().status().batch, 8u);
  EXPECT_GT(pool.coordinator().status().noise_scale, 0);
  ASSERT_EQ(pool.run(), "ok");
}

}  // namespace
}  // namespace w5xde
