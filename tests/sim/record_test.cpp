// What a run leaves behind and goes on from: the data cursor, the schedule, the record.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>

#include "record/run_database.h"
#include "sim/sim_pool.h"

namespace w5xde {
namespace {

// Epochs of 40 slots of 25 samples, in steps of 12: the last of an epoch's four has 4.
RunConfig epochs_config(double epochs) {
  RunConfig config = sim_config();
  config.batch = 25;
  config.slots = 12;
  config.steps = 0;
  config.epochs = epochs;
  return config;
}

// One epoch, then as many in all.
Summary extended(double epochs, unsigned nodes, std::optional<std::uint64_t> restarted_at = {}) {
  RunConfig config = epochs_config(1);
  config.schedule = {};
  if (restarted_at) config.checkpoint_seconds = 1e-6;
  SimPool pool(config);
  pool.add_nodes(nodes);
  EXPECT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().samples, 1000u);
  config.epochs = epochs;
  pool.set_config(config);
  pool.restart_coordinator();
  if (restarted_at) {
    EXPECT_TRUE(pool.run_until([&] { return pool.coordinator().status().step >= *restarted_at; }));
    pool.restart_coordinator();
  }
  EXPECT_EQ(pool.run(), "ok");
  return pool.coordinator().summary();
}

TEST(RecordTest, a_finished_run_that_is_extended_goes_on_with_the_slot_where_its_short_last_step_ended) {
  const Summary summary = extended(2, 2);
  EXPECT_EQ(summary.batches, 80u);
  EXPECT_EQ(summary.samples, 2000u);
  EXPECT_EQ(summary.steps, 8u);
  EXPECT_EQ(summary.audit.samples_expected, 2000u);
  EXPECT_EQ(summary.audit.slots_missing, 0u);
  EXPECT_TRUE(summary.audit.passed());
}

TEST(RecordTest, an_extended_run_has_the_same_bits_whoever_computes_it_and_however_often_it_is_resumed) {
  const Summary expected = extended(3, 1);
  EXPECT_EQ(expected.samples, 3000u);
  EXPECT_EQ(extended(3, 3).parameters_hash, expected.parameters_hash);
  for (const std::uint64_t step : {5u, 7u}) {
    const Summary resumed = extended(3, 2, step);
    EXPECT_EQ(resumed.parameters_hash, expected.parameters_hash) << step;
    EXPECT_TRUE(resumed.audit.passed());
  }
}

TEST(RecordTest, a_short_run_has_a_row_for_every_step) {
  const RunConfig config = sim_config();
  SimPool pool(config);
  pool.add_nodes(2);
  ASSERT_EQ(pool.run(), "ok");
  const std::uint64_t steps = pool.coordinator().summary().steps;
  const auto folder = pool.run_folder();
  (void)pool.newest_checkpoint();  // the coordinator is gone, and what it recorded is on the disk
  const RunDatabase database = RunDatabase::look(folder / "run.db").value();
  EXPECT_EQ(database.steps(10'000).size(), steps);
}

TEST(RecordTest, an_end_in_steps_is_one_after_a_short_step_too) {
  RunConfig config = epochs_config(1);
  SimPool pool(config);
  pool.add_nodes(2);
  ASSERT_EQ(pool.run(), "ok");
  config.epochs = 0;
  config.steps = 10;
  pool.set_config(config);
  pool.restart_coordinator();
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().steps, 10u);
  EXPECT_EQ(pool.coordinator().summary().batches, 40u + 6 * 12);
  EXPECT_TRUE(pool.coordinator().summary().audit.passed());
}

TEST(RecordTest, an_extended_async_run_commits_every_sample_once) {
  RunConfig config = epochs_config(1);
  config.mode = Mode::async;
  SimPool pool(config);
  pool.add_nodes(2);
  ASSERT_EQ(pool.run(), "ok");
  config.epochs = 2;
  pool.set_config(config);
  pool.restart_coordinator();
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().samples, 2000u);
  EXPECT_TRUE(pool.coordinator().summary().audit.passed());
}

// The last that was recorded.
double recorded_rate(const SimPool& pool) {
  const auto database = RunDatabase::look(pool.run_folder() / "run.db").value();
  return database.steps(1).at(0).learning_rate;
}

TEST(RecordTest, the_schedule_of_an_async_run_follows_the_data_and_not_the_number_of_updates) {
  RunConfig config = sim_config();
  config.mode = Mode::async;
  // 30 steps of 6 slots, in updates of 4 slots at most: more than 40 of them.
  config.schedule = parse_schedule("step:40,0.1", 1).value();
  SimPool pool(config);
  pool.add_nodes(2);
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_GE(pool.coordinator().summary().steps, 45u);
  (void)pool.newest_checkpoint();
  EXPECT_EQ(recorded_rate(pool), config.optimizer.learning_rate);
}

TEST(RecordTest, the_schedule_of_an_async_run_is_at_its_end_when_the_run_is) {
  RunConfig config = sim_config();
  config.mode = Mode::async;
  config.schedule = parse_schedule("step:29,0.1", 1).value();
  SimPool pool(config);
  pool.add_nodes(2);
  ASSERT_EQ(pool.run(), "ok");
  (void)pool.newest_checkpoint();
  EXPECT_DOUBLE_EQ(recorded_rate(pool), 0.1 * config.optimizer.learning_rate);
}

RunDatabase database_of(SimPool& pool) {
  (void)pool.newest_checkpoint();  // the coordinator is gone, and has written all
  return RunDatabase::look(pool.run_folder() / "run.db").value();
}

TEST(RecordTest, an_async_run_that_is_resumed_keeps_the_rows_of_its_updates) {
  RunConfig config = sim_config();
  config.mode = Mode::async;
  SimPool pool(config);
  pool.add_nodes(2);
  ASSERT_EQ(pool.run(), "ok");
  const std::uint64_t updates = pool.coordinator().summary().steps;
  ASSERT_GT(updates, config.steps);
  config.steps = 60;
  pool.set_config(config);
  pool.restart_coordinator();
  ASSERT_EQ(pool.run(), "ok");
  const auto rows = database_of(pool).steps(1000);
  EXPECT_TRUE(std::ranges::any_of(rows, [&](const auto& row) { return row.step == updates; }))
      << "what is saved is not done again";
}

TEST(RecordTest, every_node_that_joined_has_left_when_the_run_is_over_and_says_what_it_computed) {
  SimPool pool(sim_config());
  pool.add_nodes(2);
  pool.start();
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().step >= 10; }));
  ASSERT_TRUE(pool.kill_node(0));
  ASSERT_TRUE(pool.run_until([&] { return !pool.coordinator().status().departures.empty(); }));
  EXPECT_EQ(pool.coordinator().status().departures.at(0).name, "node-1");
  ASSERT_EQ(pool.run(), "ok");
  const auto nodes = database_of(pool).nodes();
  ASSERT_GE(nodes.size(), 2u);
  EXPECT_LE(nodes.size(), pool.stays()) << "a row for each stay";
  std::uint64_t batches = 0, to_the_end = 0;
  for (const auto& node : nodes) {
    EXPECT_FALSE(std::isnan(node.left_seconds)) << node.name;
    EXPECT_GE(node.left_seconds, node.joined_seconds);
    batches += node.batches;
    if (node.reason == "the run is finished") ++to_the_end;
  }
  EXPECT_GE(batches, 180u) << "what was computed twice, because of the one that was killed, counts too";
  EXPECT_GE(to_the_end, 1u);
}

RunConfig evaluating_config() {
  RunConfig config = sim_config();
  config.evaluate_every = 1;
  return config;
}

// 20 slots: they take as long as a step or two.
std::shared_ptr<const Dataset> evaluation_data() {
  return open_dataset("random:10,10,5000", Split::train, 3).value();
}

double loss_of_best(const SimPool& pool) {
  return *CheckpointFile::open(pool.run_folder() / "checkpoints" / "best.safetensors")
              ->info()
              .evaluation_loss;
}

TEST(RecordTest, the_best_checkpoint_stays_when_a_resumed_run_s_first_evaluation_is_worse) {
  RunConfig config = evaluating_config();
  config.checkpoint_seconds = 1e-6;
  SimPool pool(config);
  pool.evaluate_on(evaluation_data());
  const auto evaluated = std::make_shared<std::atomic<int>>(0);
  pool.add_node({.touch_evaluation = [evaluated](Evaluation& evaluation) {
    evaluation.loss_sum += 1000.0 * ++*evaluated;  // each is worse than the one before
  }});
  pool.start();
  for (std::uint64_t step = 2; step < 20; step += 3) {
    ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().step >= step; }));
    pool.restart_coordinator();
  }
  ASSERT_EQ(pool.run(), "ok");
  const auto evaluations = database_of(pool).evaluations();
  ASSERT_GE(evaluations.size(), 2u);
  EXPECT_EQ(evaluations.front().step, 1u);
  EXPECT_LT(evaluations.front().loss, evaluations.back().loss);
  EXPECT_EQ(loss_of_best(pool), evaluations.front().loss);
}

TEST(RecordTest, an_evaluation_that_is_no_number_is_never_the_best) {
  const auto spoilt = std::make_shared<std::atomic<int>>(3);
  SimPool pool(evaluating_config());
  pool.evaluate_on(evaluation_data());
  pool.add_node({.touch_evaluation = [spoilt](Evaluation& evaluation) {
    if (spoilt->fetch_sub(1) > 0) evaluation.loss_sum = std::numeric_limits<double>::quiet_NaN();
  }});
  ASSERT_EQ(pool.run(), "ok");
  const auto evaluations = database_of(pool).evaluations();
  ASSERT_TRUE(std::isnan(evaluations.at(0).loss));
  double best = std::numeric_limits<double>::infinity();
  for (const auto& evaluation : evaluations) best = std::fmin(best, evaluation.loss);
  EXPECT_EQ(loss_of_best(pool), best);
}

TEST(RecordTest, a_batch_that_grows_is_resumed_to_the_same_bits_from_a_checkpoint_after_an_evaluation) {
  RunConfig config = evaluating_config();
  config.batch = 8;
  config.slots = 8;
  config.steps = 60;
  config.optimizer.learning_rate = 0.1;
  config.growth = {.policy = BatchPolicy::grows, .samples_max = 512, .every = 4};
  const std::string expected = plain_hash(config);
  SimPool pool(config);
  pool.evaluate_on(evaluation_data());
  pool.add_nodes(2);
  pool.start();
  // Checkpoints are those of the best evaluations, while the next step is computed.
  for (std::uint64_t step = 2; step < 24; step += 2) {
    ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().step >= step; }));
    pool.restart_coordinator();
  }
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_EQ(pool.coordinator().summary().parameters_hash, expected);
}

TEST(RecordTest, a_run_that_is_stopped_while_it_is_evaluated_and_its_nodes_go_saves_what_is_committed) {
  SimPool pool(evaluating_config());
  pool.evaluate_on(evaluation_data());
  pool.add_nodes(2);
  pool.start();
  ASSERT_TRUE(pool.run_until([&] {
    const StatusReport report = pool.coordinator().status();
    return report.step >= 5 && report.phase == "evaluating";
  }));
  const std::uint64_t step = pool.coordinator().status().step;
  pool.on_turn = [&] {  // whoever comes back goes again
    for (std::size_t node = 0; node < pool.nodes(); ++node) (void)pool.kill_node(node);
  };
  pool.coordinator().stop("told to");
  ASSERT_EQ(pool.run(), "ok");
  EXPECT_TRUE(pool.coordinator().stopped_early());
  EXPECT_EQ(pool.newest_checkpoint().info().step, step);
}

TEST(RecordTest,
     an_async_run_that_is_stopped_while_its_nodes_go_saves_what_is_committed_and_goes_on_from_it) {
  RunConfig config = sim_config();
  config.mode = Mode::async;
  SimPool pool(config);
  pool.add_nodes(3);
  pool.start();
  ASSERT_TRUE(pool.run_until([&] { return pool.coordinator().status().batches >= 40; }));
  pool.on_turn = [&] {
    for (std::size_t node = 0; node < pool.nodes(); ++node) (void)pool.kill_node(node);
  };
  pool.coordinator().stop("told to");
  ASSERT_EQ(pool.run(), "ok");
  const Summary stopped = pool.coordinator().summary();
  EXPECT_TRUE(stopped.audit.passed());
  EXPECT_GE(stopped.batches, 40u);
  EXPECT_LT(stopped.batches, 180u);
  EXPECT_EQ(pool.newest_checkpoint().info().slots_committed, stopped.batches);
  pool.on_turn = {};
  pool.restart_coordinator();
  ASSERT_EQ(pool.run(), "ok");
  const Summary summary = pool.coordinator().summary();
  EXPECT_EQ(summary.batches, 180u);
  EXPECT_EQ(summary.audit.samples_committed, summary.audit.samples_expected);
  EXPECT_TRUE(summary.audit.passed());
}

TEST(RecordTest, a_run_ends_at_its_target_only_if_the_parameters_that_it_saves_reach_it) {
  RunConfig config = evaluating_config();
  config.transport.parameter_codec = parse_gradient_choice("onebit").value();
  std::vector<double> accuracies;  // of the last run's evaluations
  const auto run = [&](double target) {
    config.target_accuracy = target;
    SimPool pool(config);
    pool.evaluate_on(evaluation_data());
    pool.add_nodes(2);
    EXPECT_EQ(pool.run(), "ok");
    const Summary summary = pool.coordinator().summary();
    accuracies.clear();
    for (const auto& evaluation : database_of(pool).evaluations()) accuracies.push_back(evaluation.accuracy);
    return summary;
  };
  const Summary whole = run(0);
  unsigned ended = 0, went_on = 0;
  // Whatever nodes were shown is a target that is in sight once, and reached or not.
  for (const double target : std::vector(accuracies)) {
    SCOPED_TRACE(target);
    const Summary summary = run(target);
    if (summary.steps < config.steps) {
      EXPECT_GE(summary.evaluation->accuracy, target);
      ++ended;
    } else {
      EXPECT_EQ(summary.parameters_hash, whole.parameters_hash) << "judging a run must not change it";
      ++went_on;
    }
  }
  EXPECT_GT(ended, 0u);
  EXPECT_GT(went_on, 0u);
}

// How a run with an end by its evaluations ends, when its coordinator is killed every few steps or never.
Summary ended_by_evaluations(RunConfig config, unsigned nodes, std::uint64_t killed_every = UINT64_MAX,
                             std::uint64_t killed_until = 0) {
  config.checkpoint_seconds = killed_until > 0 ? 1e-6 : 60;  // with every step, while it is evaluated
  SimPool pool(config);
  pool.evaluate_on(evaluation_data());
  pool.add_nodes(nodes);
  pool.start();
  for (std::uint64_t step = 1; step < killed_until; step += killed_every) {
    EXPECT_TRUE(pool.run_until([&] { return pool.coordinator().status().step >= step; }));
    pool.restart_coordinator();
  }
  EXPECT_EQ(pool.run(), "ok");
  const Summary summary = pool.coordinator().summary();
  EXPECT_TRUE(summary.audit.passed());
  const CheckpointInfo info = pool.newest_checkpoint().info();
  EXPECT_EQ(info.version, summary.steps);
  EXPECT_TRUE(info.evaluation_loss.has_value());
  return summary;
}

TEST(RecordTest,
     a_run_ends_by_its_evaluations_at_the_same_step_whoever_computes_and_however_often_it_is_killed) {
  RunConfig config = evaluating_config();
  config.schedule = {};
  config.steps = 1000;
  config.patience = 3;
  for (const char* end : {"brought no lower loss", "the target loss is reached"}) {
    SCOPED_TRACE(end);
    const Summary whole = ended_by_evaluations(config, 1);
    ASSERT_LT(whole.steps, config.steps);
    ASSERT_GT(whole.steps, 3u);
    EXPECT_NE(whole.ending.find(end), std::string::npos) << whole.ending;
    RunConfig as_long = config;
    as_long.steps = whole.steps;
    EXPECT_EQ(whole.parameters_hash, plain_hash(as_long)) << "no step past the one that ends it";
    for (const Summary& other :
         {ended_by_evaluations(config, 3), ended_by_evaluations(config, 2, 2, whole.steps - 1)}) {
      EXPECT_EQ(other.steps, whole.steps);
      EXPECT_EQ(other.parameters_hash, whole.parameters_hash);
      EXPECT_EQ(other.ending, whole.ending);
    }
    config.patience = 0;
    config.target_loss = whole.evaluation->loss;
  }
}

TEST(RecordTest, an_async_run_whose_patience_is_over_commits_what_is_out_and_ends) {
  RunConfig config = evaluating_config();
  config.mode = Mode::async;
  config.schedule = {};
  config.steps = 100'000;
  config.patience = 3;
  const Summary summary = ended_by_evaluations(config, 2);
  EXPECT_NE(summary.ending.find("brought no lower loss"), std::string::npos) << summary.ending;
}

// A coordinator alone may wait for hours.
TEST(RecordTest, the_time_in_which_a_run_waits_for_its_nodes_is_not_of_its_training) {
  SimPool pool(sim_config());
  pool.start(1);
  constexpr auto kWaiting = std::chrono::milliseconds(100);
  const Instant begun = pool.loop().now();
  bool waited = false;
  pool.loop().after(kWaiting, [&] { waited = true; });
  ASSERT_TRUE(pool.run_until([&] { return waited; }));
  EXPECT_EQ(pool.coordinator().status().seconds, 0);
  pool.add_nodes(1);
  EXPECT_EQ(pool.run(), "ok");
  const Summary summary = pool.coordinator().summary();
  EXPECT_GT(summary.seconds, 0);
  EXPECT_LE(summary.seconds, seconds_of(pool.loop().now() - begun - kWaiting));
}

}  // namespace
}  // namespace w5xde
