#include "commands/run_status.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <optional>

#include "base/errors.h"
#include "record/run_database.h"
#include "record/run_folder.h"
#include "record/summary.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

using Db = RunDatabase;

constexpr const char* kHash = "9f86d081884c7d659a2feaa0c55ad015";

class RunStatusTest : public testing::Test {
 protected:
  // A coordinator that has the folder until this goes.
  RunFolder coordinator() const {
    RunFolder folder = RunFolder::open(path_).value();
    folder.introduce("127.0.0.1:5555", "w5xde train RUN --nodes 2");
    return folder;
  }

  // Ten steps; a node that left and came back, and one that stays.
  static void train(const RunFolder& folder) {
    Db database = Db::open(folder.database()).value();
    for (std::uint64_t step = 1; step <= 10; ++step) {
      ASSERT_TRUE(database
                      .add(Db::StepRow{.step = step,
                                       .loss = 1.0 / static_cast<double>(step),
                                       .batches_per_second = 50,
                                       .seconds = static_cast<double>(step)})
                      .ok());
    }
    add(database, {.name = "node-1", .peer = "p", .joined_seconds = 0});
    add(database, {.name = "node-2",
                   .peer = "p",
                   .joined_seconds = 0,
                   .left_seconds = 3,
                   .reason = "it was killed",
                   .batches = 7});
    add(database, {.name = "node-2", .peer = "q", .joined_seconds = 4});
    save_checkpoint(folder, 8);
  }

  static void add(Db& database, const Db::NodeRow& row) { ASSERT_TRUE(database.add(row).ok()); }

  static void save_checkpoint(const RunFolder& folder, std::uint64_t step) {
    const auto layout = BlockLayout::make({{"weight", {1}}}, 100).value();
    const std::vector<float> values(layout->floats(), 0.5f);
    const std::vector<NamedBlock> blocks = {{"parameters", layout.get(), values}};
    ASSERT_TRUE(
        write_checkpoint(folder.checkpoint_path(step), {.step = step, .evaluation_loss = 0.2}, blocks).ok());
    ASSERT_TRUE(folder.retain(step, true, 2).ok());
  }

  static void end(const RunFolder& folder, const std::string& outcome) {
    Db database = Db::open(folder.database()).value();
    for (Db::NodeRow row : database.nodes()) {
      row.left_seconds = 10;
      row.reason = "the run is finished";
      row.batches = 20;
      add(database, row);
    }
    Summary summary{.mode = "sync", .outcome = outcome, .nodes = 2, .seconds = 12.5, .steps = 10};
    summary.loss.last = 0.1;
    summary.evaluation = EvaluationStats{.loss = 0.2, .accuracy = 0.875};
    summary.parameters_hash = kHash;
    std::ofstream(folder.summary()) << to_json(summary);
    const auto now = std::filesystem::file_time_type::clock::now();
    std::filesystem::last_write_time(folder.summary(), now - std::chrono::minutes(5));
  }

  static Result<StatusReport> nobody(const Address&) { return disconnected("connection refused"); }

  RunStatus status(const AskCoordinator& ask = nobody) const {
    auto read = status_of_folder(path_, ask);
    EXPECT_TRUE(read.ok()) << read.error().message;
    return std::move(*read);
  }

  // Of the text of the status, each of these is a part.
  void expect(const std::vector<std::string>& parts) const {
    const std::string text = to_text(status());
    for (const std::string& part : parts)
      EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
  }

  TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "a";
};

TEST_F(RunStatusTest, a_folder_whose_coordinator_answers_shows_what_it_says) {
  const RunFolder folder = coordinator();
  train(folder);
  std::optional<std::string> asked;
  const RunStatus found = status([&](const Address& address) -> Result<StatusReport> {
    asked = address.to_string();
    return StatusReport{.run = "a", .phase = "training", .step = 4711, .loss = 0.25};
  });
  EXPECT_EQ(asked, "127.0.0.1:5555");
  EXPECT_EQ(found.report.step, 4711u);
  EXPECT_EQ(found.report.age_seconds, 0);
  EXPECT_TRUE(found.notes.empty());
}

TEST_F(RunStatusTest, a_coordinator_that_does_not_answer_is_named_with_the_age_of_the_figures) {
  const RunFolder folder = coordinator();
  train(folder);
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(folder.database(), now - std::chrono::seconds(60));
  expect({"a  training  step 10  loss 0.1000  50 batches/s  10 s of training\n",
          "these figures are as of 60 s ago: process ",
          " has the run, and did not answer (connection refused)", "nodes that were in: node-1, node-2\n"});
  EXPECT_GE(status().report.age_seconds, 60);
  EXPECT_TRUE(status().report.departures.empty()) << "who came back has not left";
}

TEST_F(RunStatusTest, a_finished_run_says_when_and_with_what_result_and_nobody_is_in) {
  {
    const RunFolder folder = coordinator();
    train(folder);
    end(folder, kFinished);
  }
  expect({"a  finished  step 10  loss 0.1000", "\nfinished 5 min ago (20",
          "evaluation: loss 0.2000, accuracy 87.50 %", kHash, "newest checkpoint: ", "of step 8\n",
          "of step 8, with the lowest evaluation loss: 0.2000\n"});
  const RunStatus found = status([](const Address&) -> Result<StatusReport> {
    ADD_FAILURE() << "there is nobody to ask";
    return StatusReport();
  });
  EXPECT_TRUE(found.report.nodes.empty());
  ASSERT_EQ(found.report.departures.size(), 2u) << "each node is listed once";
  EXPECT_EQ(found.report.departures[0].batches, 20u);
  EXPECT_EQ(found.report.departures[1].batches, 40u);
  EXPECT_EQ(to_text(found).find("go on with"), std::string::npos);
}

TEST_F(RunStatusTest, a_run_that_was_stopped_or_failed_says_so_and_how_to_go_on) {
  {
    const RunFolder folder = coordinator();
    train(folder);
    end(folder, kStopped);
  }
  expect({"a  stopped  step 10", "\nstopped 5 min ago (",
          "go on with: w5xde train " + path_.string() + " --nodes 2\n"});
  end(RunFolder::look(path_).value(), "training diverged at step 3");
  expect({"a  failed  step 10", "\nfailed 5 min ago (", "training diverged at step 3\n", "go on with: "});
}

TEST_F(RunStatusTest, a_run_that_was_killed_says_so_and_how_to_go_on) {
  train(coordinator());
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(path_ / "run.db", now - std::chrono::minutes(5));
  expect({"a  killed  step 10  loss 0.1000", "it was killed, about 5 min ago (20", "of step 8\n",
          "go on with: w5xde train " + path_.string() + " --nodes 2\n",
          " – batches  the coordinator was killed\n"});
  EXPECT_TRUE(status().report.nodes.empty());
}

TEST_F(RunStatusTest, a_run_that_has_not_begun_has_no_loss) {
  { const RunFolder folder = coordinator(); }
  const std::string text = to_text(status());
  EXPECT_TRUE(text.starts_with("a  not begun  step 0  0 s of training\n")) << text;
  EXPECT_EQ(text.find("loss"), std::string::npos) << text;
}

TEST_F(RunStatusTest, what_is_no_run_is_refused) {
  EXPECT_FALSE(status_of_folder(folder_.path(), nobody).ok());
}

TEST(RunStatusTextTest, a_node_that_is_in_again_is_marked_among_those_that_left) {
  RunStatus live{.report = {.run = "a", .phase = "training", .step = 5, .steps_total = 9, .working = 1}};
  live.report.nodes = {{.name = "node-1", .batches = 3},
                       {.name = "node-2", .standing = "standby", .reason = "why"}};
  live.report.departures = {{.name = "node-2", .seconds = 2, .reason = "it was killed", .batches = 4},
                            {.name = "node-3", .seconds = 1, .reason = "it left", .batches = 1}};
  const std::string text = to_text(live);
  EXPECT_NE(text.find("a  training  step 5 of 9  0 s of training\n"), std::string::npos) << text;
  EXPECT_NE(text.find("1 of 2 nodes work at a time: more at once would make a step longer\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("it was killed; it came back\n"), std::string::npos) << text;
  EXPECT_NE(text.find("it left\n"), std::string::npos) << text;
  live.report.working = 2;
  EXPECT_EQ(to_text(live).find("nodes work"), std::string::npos) << "all of them";
}

}  // namespace
}  // namespace w5xde
