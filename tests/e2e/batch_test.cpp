// Batches that w5xde chooses by itself.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "pool.h"

namespace w5xde {
namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The number that run.toml has of a setting; -1 where it has none.
int number_of(const std::string& toml, const std::string& setting) {
  std::istringstream lines(toml);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(setting + " = ")) return std::atoi(line.c_str() + setting.size() + 3);
  }
  return -1;
}

TEST(BatchTest, a_batch_that_is_measured_is_written_down_and_the_same_command_goes_on_with_it) {
  const Words flags = {"--model", "mlp:10,20,10", "--data", "synthetic", "--batch", "auto", "--slots", "16"};
  Pool pool({.name = "measured", .flags = flags});
  Process coordinator = pool.train(2, {"--steps", "5"});
  ASSERT_EQ(coordinator.wait(), 0) << coordinator.said();
  const std::string toml = text_of(pool.run() / "run.toml");
  const int batch = number_of(toml, "batch"), slots = number_of(toml, "slots");
  EXPECT_GE(batch, 8) << toml;
  EXPECT_LE(batch, 64) << "eight slots of 512 samples";
  EXPECT_EQ(batch * slots, 512) << toml;
  const auto summary = pool.summary();
  EXPECT_EQ(summary.at("batch"), batch);
  EXPECT_EQ(summary.at("global_batch"), 512);
  EXPECT_EQ(summary.at("batch_trials").size(), 4u);
  EXPECT_EQ(summary.at("batch_trials")[0].at("batch"), 8);
  EXPECT_GT(summary.at("batch_trials")[0].at("samples_per_second"), 0);

  Words again = flags;
  again.insert(again.end(), {"--steps", "10"});
  Process resumed = pool.train(1, again);
  ASSERT_EQ(resumed.wait(), 0) << resumed.said();
  EXPECT_EQ(number_of(text_of(pool.run() / "run.toml"), "batch"), batch);
  EXPECT_EQ(pool.summary().at("steps"), 10);
  EXPECT_TRUE(pool.summary().at("batch_trials").empty()) << "only a new run is measured";
}

TEST(PartsPoolTest, whole_or_in_parts_through_a_codec_by_chunks_or_none_it_comes_to_the_same_bits) {
  for (const char* codec : {"none", "bf16", "int8"}) {
    const Workload workload{
        .name = "parts",
        .flags = {"--model", "mlp:64,128,128,10", "--data", "random:64,10", "--batch", "16", "--slots", "4",
                  "--steps", "12", "--gradient-codec", codec, "--parameter-codec", codec}};
    Pool whole(workload), parts(workload);
    Process one = whole.train(1, {"--part-bytes", "0"}), other = parts.train(1, {"--part-bytes", "8192"});
    ASSERT_EQ(one.wait(), 0) << one.said();
    ASSERT_EQ(other.wait(), 0) << other.said();
    EXPECT_EQ(whole.summary().at("parameters_hash"), parts.summary().at("parameters_hash")) << codec;
    const std::string up = parts.summary().at("per_node")[0].at("codec_up");
    EXPECT_NE(up.find("13 parts"), std::string::npos) << up;
  }
}

TEST(BatchTest, a_global_batch_that_grows_comes_to_the_same_bits_for_1_and_3_nodes_and_after_kill_9) {
  const Workload growing{.name = "growing",
                         .flags = {"--model", "mlp:10,20,10", "--data", "synthetic", "--momentum", "0.9",
                                   "--learning-rate", "0.005", "--batch", "4", "--slots", "4", "--steps",
                                   "600", "--global-batch", "auto", "--global-batch-max", "128"}};
  Pool alone(growing);
  Process one = alone.train(1);
  ASSERT_EQ(one.wait(), 0) << one.said();
  const auto expected = alone.summary();
  ASSERT_FALSE(expected.at("batch_growth").at("growths").empty()) << one.said();
  EXPECT_NE(one.said().find("the global batch grows from step"), std::string::npos) << one.said();

  Pool pool(growing);
  Process killed = pool.train(3, {"--checkpoint-seconds", "0.02"});
  (void)killed.wait_for_line("checkpoint of step");
  (void)killed.wait_for_line("checkpoint of step");
  killed.signal(SIGKILL);
  EXPECT_EQ(killed.wait(), 128 + SIGKILL) << killed.said();
  Process resumed = pool.train(3);
  ASSERT_EQ(resumed.wait(), 0) << resumed.said();
  const auto summary = pool.summary();
  EXPECT_EQ(summary.at("parameters_hash"), expected.at("parameters_hash"));
  EXPECT_EQ(summary.at("batch_growth"), expected.at("batch_growth"));
  EXPECT_EQ(summary.at("steps"), 600);
  EXPECT_EQ(summary.at("audit").at("samples_committed"), summary.at("audit").at("samples_expected"));
}

}  // namespace
}  // namespace w5xde
