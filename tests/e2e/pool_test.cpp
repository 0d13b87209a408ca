// The same run, whatever happens to the pool: it must always end with the bits of a single node.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <map>
#include <vector>

#include "base/random.h"
#include "node/machine.h"
#include "pool.h"

namespace w5xde {
namespace {

constexpr std::uint64_t kSeed = 20261115;
constexpr int kInterrupted = 4;

Workload mlp() {
  return {.name = "mlp_numbers",
          .flags = {"--model", "mlp:10,20,10", "--data", "synthetic", "--momentum", "0.9", "--learning-rate",
                    "0.01", "--batch", "32", "--slots", "8", "--epochs", "500"},
          .steps = 2000,
          .samples = 500 * 1000};
}

Workload lenet() {
  return {.name = "lenet_images",
          .flags = {"--model", "lenet:dropout=0.25", "--data", "idx:images", "--optimizer", "adamw",
                    "--learning-rate", "0.001", "--batch", "16", "--slots", "8", "--steps", "100"},
          .steps = 100,
          .samples = 100 * 8 * 16};
}

Workload resnet() {
  return {.name = "resnet_images",
          .flags = {"--model", "resnet-small", "--data", "idx:images", "--momentum", "0.9", "--learning-rate",
                    "0.01", "--batch", "4", "--slots", "6", "--steps", "50"},
          .steps = 50,
          .samples = 50 * 6 * 4};
}

// Every slot crops and flips by draws of its own.
Workload cropped() {
  return {.name = "cropped_images",
          .flags = {"--model", "lenet:dropout=0.25", "--data", "idx:images", "--normalize", "auto",
                    "--augment", "crop:3,flip", "--momentum", "0.9", "--learning-rate", "0.01", "--batch",
                    "8", "--slots", "6", "--steps", "60"},
          .steps = 60,
          .samples = 60 * 6 * 8};
}

class SameBitsTest : public testing::TestWithParam<Workload> {
 protected:
  SameBitsTest() : pool_(GetParam()) {}

  // The hash that one node trains to.
  static std::string reference() {
    static std::map<std::string, std::string> known;
    std::string& hash = known[GetParam().name];
    if (hash.empty()) {
      Pool alone(GetParam());
      Process coordinator = alone.train(1, {"--cores", "1"});
      EXPECT_EQ(coordinator.wait(), 0) << coordinator.said();
      hash = alone.summary().at("parameters_hash");
      EXPECT_EQ(alone.summary().at("per_node").size(), 1u);
      EXPECT_EQ(alone.summary().at("per_node")[0].at("lanes"), 1u);
    }
    return hash;
  }

  // The coordinator ended well, with the right bits and every sample in them once.
  void expect_same(Process& coordinator) const {
    ASSERT_EQ(coordinator.wait(), 0) << coordinator.said();
    const auto summary = pool_.summary();
    EXPECT_EQ(summary.at("parameters_hash"), reference()) << coordinator.said();
    EXPECT_EQ(summary.at("steps"), GetParam().steps);
    EXPECT_EQ(summary.at("samples"), GetParam().samples);
    const auto audit = summary.at("audit");
    EXPECT_EQ(audit.at("samples_expected"), GetParam().samples);
    EXPECT_EQ(audit.at("samples_committed"), GetParam().samples);
  }

  // What the nodes say they did is what was done: no slot was counted twice.
  void expect_every_batch_has_its_node() const {
    const auto summary = pool_.summary();
    std::uint64_t sum = 0;
    for (const auto& node : summary.at("per_node")) sum += node.at("batches").get<std::uint64_t>();
    EXPECT_EQ(sum, summary.at("batches"));
  }

  std::uint64_t batches_of(const std::string& node) const {
    const auto summary = pool_.summary();
    for (const auto& entry : summary.at("per_node")) {
      if (entry.at("name") == node) return entry.at("batches");
    }
    return 0;
  }

  // Somewhere between its next checkpoint and a few later.
  void kill_after_checkpoint(Process& coordinator, Random& random) const {
    const std::uint64_t saved = step_in(coordinator.wait_for_line("checkpoint of step"));
    pool_.wait_for("step", saved + part(0.2 * random.unit()));
    coordinator.signal(SIGKILL);
    EXPECT_EQ(coordinator.wait(), 128 + SIGKILL) << coordinator.said();
  }

  std::uint64_t part(double share) const {
    return static_cast<std::uint64_t>(share * double(GetParam().steps));
  }

  Pool pool_;
};

TEST_P(SameBitsTest, a_node_with_all_cores_learns_what_it_learns_with_one) {
  Process coordinator = pool_.train(1);
  expect_same(coordinator);
  // Before it is known how long they take, leases count as long.
  const std::uint64_t lanes = pool_.summary().at("per_node")[0].at("lanes");
  EXPECT_EQ(lanes > 1, Machine::here().cores > 1);
}

TEST_P(SameBitsTest, three_nodes_learn_what_one_learns) {
  Process coordinator = pool_.train(3);
  expect_same(coordinator);
  EXPECT_EQ(pool_.summary().at("nodes"), 3);
  expect_every_batch_has_its_node();
}

TEST_P(SameBitsTest, seven_nodes_learn_what_one_learns) {
  Process coordinator = pool_.train(7, {"--turns", "false"});
  expect_same(coordinator);
  EXPECT_EQ(pool_.summary().at("nodes"), 7);
  expect_every_batch_has_its_node();
}

TEST_P(SameBitsTest, nodes_may_come_late) {
  Process coordinator = pool_.serve({"--turns", "false"});  // so that late ones have work at once
  Process first = pool_.join("first");
  pool_.wait_for("step", 1);
  // However fast it is, it must not be done before the others are there.
  first.signal(SIGSTOP);
  Process late = pool_.join("late", {"--nodes", "2"});
  for (int i = 0; i < 2; ++i) coordinator.wait_for_line("late-");
  first.signal(SIGCONT);
  expect_same(coordinator);
  EXPECT_GT(batches_of("late-1"), 0u);
  EXPECT_GT(batches_of("late-2"), 0u);
  expect_every_batch_has_its_node();
  EXPECT_EQ(first.wait(), 0) << first.said();
  EXPECT_EQ(late.wait(), 0) << late.said();
}

TEST_P(SameBitsTest, nodes_may_be_killed_at_any_instant) {
  Random random(kSeed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  Process coordinator = pool_.serve({"--wait-for", "3"});
  std::vector<Process> nodes;
  const auto add_node = [&] { nodes.push_back(pool_.join("node" + std::to_string(nodes.size() + 1))); };
  for (int i = 0; i < 3; ++i) add_node();
  for (const double share : {0.05, 0.3, 0.55}) {
    pool_.wait_for("step", part(share + 0.2 * random.unit()));
    nodes[random.below(nodes.size())].signal(SIGKILL);
    add_node();
  }
  expect_same(coordinator);
  EXPECT_NE(coordinator.said().find(" left: "), std::string::npos) << coordinator.said();
  expect_every_batch_has_its_node();
}

TEST_P(SameBitsTest, killed_local_nodes_are_started_again) {
  Random random(kSeed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  Process coordinator = pool_.train(3, {"--checkpoint-seconds", "0.1"});
  for (int kill_number = 0; kill_number < 2; ++kill_number) {
    coordinator.wait_for_line("checkpoint of step");
    const auto processes = coordinator.descendants();  // the engine host, then its nodes
    ASSERT_EQ(processes.size(), 4u);
    ::kill(processes[1 + random.below(3)], SIGKILL);
    coordinator.wait_for_line("joined from");
  }
  expect_same(coordinator);
}

TEST_P(SameBitsTest, a_frozen_node_holds_nobody_up) {
  Process coordinator = pool_.serve({"--wait-for", "3", "--turns", "false"});  // so that it holds a lease
  Process one = pool_.join("one");
  Process two = pool_.join("two");
  Process frozen = pool_.join("frozen");
  pool_.wait_for("step", part(0.2));
  frozen.signal(SIGSTOP);
  expect_same(coordinator);
  EXPECT_EQ(one.wait(), 0) << one.said();
  EXPECT_EQ(two.wait(), 0) << two.said();
  EXPECT_GT(pool_.summary().at("audit").at("slots_leased_again"), 0);
  expect_every_batch_has_its_node();
}

TEST_P(SameBitsTest, a_killed_coordinator_goes_on_from_its_checkpoint) {
  Random random(kSeed);
  std::printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  Process node = [&] {
    Process coordinator = pool_.serve({"--checkpoint-seconds", "0.1"});
    Process joined = pool_.join("node", {"--nodes", "2"});
    kill_after_checkpoint(coordinator, random);
    return joined;
  }();
  {
    Process resumed = pool_.serve();
    EXPECT_GT(step_in(resumed.wait_for_line("going on from step")), 0u);
    resumed.wait_for_line("joined from");  // by itself: nobody started it again
    kill_after_checkpoint(resumed, random);
  }
  node.signal(SIGKILL);
  Process last = pool_.train(2);
  EXPECT_GT(step_in(last.wait_for_line("going on from step")), 0u);
  expect_same(last);
}

TEST_P(SameBitsTest, a_run_stopped_with_ctrl_c_goes_on_where_it_was) {
  Process coordinator = pool_.train(2, {"--checkpoint-seconds", "0.1"});
  const std::uint64_t seen = step_in(coordinator.wait_for_line("checkpoint of step"));
  coordinator.signal(SIGINT);
  EXPECT_EQ(coordinator.wait(), kInterrupted) << coordinator.said();
  const auto stopped = pool_.summary();
  EXPECT_GE(stopped.at("steps"), seen);
  EXPECT_LT(stopped.at("steps"), GetParam().steps);
  EXPECT_EQ(stopped.at("audit").at("samples_expected"), stopped.at("audit").at("samples_committed"));
  Process resumed = pool_.train(3);
  EXPECT_EQ(step_in(resumed.wait_for_line("going on from step")), stopped.at("steps"));
  expect_same(resumed);
}

INSTANTIATE_TEST_SUITE_P(Pool, SameBitsTest, testing::Values(mlp(), lenet(), resnet(), cropped()),
                         [](const auto& workload) { return workload.param.name; });

}  // namespace
}  // namespace w5xde
