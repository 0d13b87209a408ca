#include "local_pool/progress.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

StatusReport report(std::uint64_t step, std::uint64_t steps_total, double seconds) {
  StatusReport report{
      .step = step, .steps_total = steps_total, .epochs = 0.5, .seconds = seconds, .loss = 0.43123};
  report.batches_per_second = 5119.7;
  report.nodes.resize(10);
  return report;
}

RunConfig ends_after(double seconds) {
  RunConfig config;
  config.seconds = seconds;
  return config;
}

TEST(ProgressLineTest, it_says_how_far_how_well_how_fast_with_whom_and_how_long_yet) {
  EXPECT_EQ(progress_line(report(250, 1000, 14), {}),
            "step 250/1000  epoch 0.50  loss 0.4312  5120 batches/s  10 nodes  ETA 0:42");
}

TEST(ProgressLineTest, before_the_first_step_there_is_no_loss) {
  StatusReport begun = report(0, 1000, 0);
  begun.loss.reset();
  EXPECT_EQ(progress_line(begun, {}), "step 0/1000  epoch 0.50  loss –  5120 batches/s  10 nodes");
}

TEST(ProgressLineTest, one_node_is_one_node) {
  StatusReport alone = report(1, 2, 1);
  alone.nodes.resize(1);
  EXPECT_NE(progress_line(alone, {}).find("  1 node  "), std::string::npos) << progress_line(alone, {});
}

TEST(ProgressLineTest, an_async_run_has_its_end_in_epochs_batches_or_time) {
  StatusReport async = report(250, 0, 14);
  RunConfig config;
  EXPECT_EQ(progress_line(async, config),
            "step 250  epoch 0.50  loss 0.4312  5120 batches/s  10 nodes  ETA 0:14")
      << "one epoch";
  config.epochs = 2;
  EXPECT_TRUE(progress_line(async, config).ends_with("  ETA 0:42"));
  async.batches = 500;
  config.steps = 100;
  config.slots = 10;
  EXPECT_TRUE(progress_line(async, config).ends_with("  ETA 0:14"));
  EXPECT_TRUE(progress_line(async, ends_after(60)).ends_with("  ETA 0:46"));
}

TEST(ProgressLineTest, without_an_end_that_is_known_there_is_no_time_left) {
  RunConfig config;
  config.steps = 100;
  config.growth.policy = BatchPolicy::grows;
  EXPECT_TRUE(progress_line(report(250, 0, 14), config).ends_with("  10 nodes"));
}

TEST(ProgressLineTest, whichever_end_is_nearer_counts) {
  EXPECT_TRUE(progress_line(report(250, 1000, 14), ends_after(20)).ends_with("  ETA 0:06"));
  EXPECT_TRUE(progress_line(report(250, 1000, 14), ends_after(6000)).ends_with("  ETA 0:42"));
}

TEST(ProgressLineTest, hours_are_hours) {
  EXPECT_TRUE(progress_line(report(1, 11, 366.1), {}).ends_with("  ETA 1:01:01"));
  EXPECT_TRUE(progress_line(report(1, 2, 3599.4), {}).ends_with("  ETA 59:59"));
  EXPECT_TRUE(progress_line(report(1, 2, 3599.6), {}).ends_with("  ETA 1:00:00"));
}

TEST(ProgressLineTest, before_the_first_step_and_after_the_last_it_is_sound) {
  EXPECT_EQ(progress_line(report(0, 1000, 0), {}).find("ETA"), std::string::npos);
  EXPECT_TRUE(progress_line(report(1000, 1000, 60), {}).ends_with("  ETA 0:00"));
  EXPECT_TRUE(progress_line(report(10, 0, 60.5), ends_after(60)).ends_with("10 nodes")) << "past its time";
}

TEST(ProgressTest, in_a_pipe_there_is_a_line_now_and_then_and_none_when_silent) {
  const TemporaryFolder folder;
  const auto lines = [&](LogTier tier, const std::string& name) {
    {
      const auto log = Log::to_file(tier, folder / name).value();
      Progress progress(log, {});
      for (const double seconds : {0.0, 1.0, 9.0, 10.5, 11.0, 21.0}) progress.show(report(1, 10, seconds));
      progress.end();
    }
    std::ifstream in(folder / name);
    std::vector<std::string> read;
    for (std::string line; std::getline(in, line);) read.push_back(line);
    return read;
  };
  EXPECT_EQ(lines(LogTier::normal, "normal").size(), 3u);
  EXPECT_EQ(lines(LogTier::silent, "silent").size(), 0u);
}

}  // namespace
}  // namespace w5xde
