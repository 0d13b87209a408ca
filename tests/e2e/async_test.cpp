// Async runs have no fixed bits; what they must keep is their samples, each exactly once, and that they
// learn.
#include <gtest/gtest.h>

#include <csignal>

#include "pool.h"

namespace w5xde {
namespace {

constexpr int kInterrupted = 4;

Workload async_mlp() {
  return {
      .name = "mlp_numbers",
      .flags = {"--model", "mlp:10,20,10", "--data", "synthetic", "--mode", "async", "--learning-rate", "0.1",
                "--batch", "32", "--slots", "40", "--epochs", "500", "--checkpoint-seconds", "0.1"},
      .samples = 500 * 1000};
}

class AsyncPoolTest : public testing::Test {
 protected:
  void expect_every_sample_once(Process& coordinator) const {
    ASSERT_EQ(coordinator.wait(), 0) << coordinator.said();
    const auto summary = pool_.summary();
    EXPECT_EQ(summary.at("mode"), "async");
    EXPECT_EQ(summary.at("samples"), pool_.workload().samples);
    EXPECT_EQ(summary.at("audit").at("samples_expected"), pool_.workload().samples);
    EXPECT_EQ(summary.at("audit").at("samples_committed"), pool_.workload().samples);
    EXPECT_LT(summary.at("evaluation").at("loss").get<double>(),
              0.9 * summary.at("loss").at("first").get<double>());
  }

  Pool pool_{async_mlp()};
};

TEST_F(AsyncPoolTest, three_nodes_learn_from_every_sample_once) {
  Process coordinator = pool_.train(3);
  expect_every_sample_once(coordinator);
}

TEST_F(AsyncPoolTest, a_killed_node_takes_no_sample_with_it) {
  Process coordinator = pool_.serve({"--wait-for", "3"});
  Process first = pool_.join("first");
  Process killed = pool_.join("killed");
  Process last = pool_.join("last");
  pool_.wait_for("batches", 4000);
  killed.signal(SIGKILL);
  coordinator.wait_for_line("killed-1 left");
  expect_every_sample_once(coordinator);
  EXPECT_EQ(first.wait(), 0) << first.said();
  EXPECT_EQ(last.wait(), 0) << last.said();
}

TEST_F(AsyncPoolTest, a_run_stopped_with_ctrl_c_goes_on_where_it_was) {
  Process coordinator = pool_.train(2);
  coordinator.wait_for_line("checkpoint of step");
  coordinator.signal(SIGINT);
  EXPECT_EQ(coordinator.wait(), kInterrupted) << coordinator.said();
  EXPECT_EQ(coordinator.said().find("did not finish in time"), std::string::npos) << coordinator.said();
  const auto stopped = pool_.summary();
  EXPECT_GT(stopped.at("samples"), 0);
  EXPECT_LT(stopped.at("samples"), pool_.workload().samples);
  EXPECT_EQ(stopped.at("audit").at("samples_expected"), stopped.at("audit").at("samples_committed"));
  Process resumed = pool_.train(3);
  resumed.wait_for_line("going on from step");
  expect_every_sample_once(resumed);
}

TEST_F(AsyncPoolTest, a_killed_coordinator_counts_from_its_checkpoint) {
  Process coordinator = pool_.train(2);
  coordinator.wait_for_line("checkpoint of step");
  coordinator.signal(SIGKILL);
  coordinator.wait();
  Process resumed = pool_.train(2);
  EXPECT_GT(step_in(resumed.wait_for_line("going on from step")), 0u);
  expect_every_sample_once(resumed);
}

}  // namespace
}  // namespace w5xde
