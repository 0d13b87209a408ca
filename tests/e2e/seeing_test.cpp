// What a person sees of a run: its status while it trains and afterwards, its figures as a picture, two runs
// side by side.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>

#include "pool.h"

namespace w5xde {
namespace {

namespace fs = std::filesystem;

const Words kMlp = {"--model", "mlp:10,20,10", "--data", "synthetic"};

Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

class SeeingTest : public testing::Test {
 protected:
  // What a command that succeeds prints.
  std::string output_of(const Words& arguments) const {
    Process process = pool_.start(arguments, {.with_output = true});
    EXPECT_EQ(process.wait(), 0) << process.said();
    return process.said();
  }
  nlohmann::json status_of_folder() const {
    (void)output_of({"status", "run", "--json", "folder.json"});
    std::ifstream file(pool_.folder() / "folder.json");
    return nlohmann::json::parse(file);
  }
  std::string read(const std::string& name) const {
    std::ifstream file(pool_.folder() / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  Pool pool_{{.name = "mlp_numbers", .flags = kMlp + Words{"--steps", "100000000"}}};
};

void expect_part(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "no '" << part << "' in:\n" << text;
}

TEST_F(SeeingTest, the_status_of_a_folder_is_what_its_coordinator_says_which_logs_nothing_of_it) {
  Process coordinator = pool_.serve();
  Process node = pool_.join("desk");
  coordinator.wait_for_line("desk-1 joined from");
  pool_.wait_for("step", 1);
  const auto live = status_of_folder();
  EXPECT_EQ(live.at("phase"), "training");
  EXPECT_EQ(live.at("age_seconds"), 0);
  EXPECT_GE(live.at("step"), 1);
  ASSERT_EQ(live.at("nodes").size(), 1u);
  EXPECT_EQ(live.at("nodes")[0].at("name"), "desk-1");
  EXPECT_TRUE(live.at("departures").empty());
  coordinator.signal(SIGINT);
  EXPECT_EQ(coordinator.wait(), 4);
  for (const char* word : {"observer", "did not come in", "status"})
    EXPECT_EQ(coordinator.said().find(word), std::string::npos) << coordinator.said();
}

TEST_F(SeeingTest,
       of_a_coordinator_that_is_frozen_the_figures_have_an_age_and_of_one_that_is_killed_it_is_said) {
  Process coordinator = pool_.serve();
  Process node = pool_.join("desk");
  pool_.wait_for("step", 1);
  coordinator.signal_alone(SIGSTOP);
  const std::string frozen = output_of({"status", "run"});
  expect_part(frozen, "these figures are as of ");
  expect_part(frozen, "process " + std::to_string(coordinator.id()) + " on ");
  coordinator.signal_alone(SIGKILL);
  coordinator.wait();
  const std::string killed = output_of({"status", "run/"});
  expect_part(killed, "run  killed  step ");
  expect_part(killed, "go on with: w5xde serve run/\n");
  EXPECT_TRUE(status_of_folder().at("nodes").empty());
}

TEST_F(SeeingTest, a_run_that_ended_is_finished_or_stopped_and_says_what_is_of_the_whole_run) {
  EXPECT_EQ(pool_.train(2, {"--steps", "40", "--evaluate-every", "10"}).wait(), 0);
  const std::string finished = output_of({"status", "run"});
  expect_part(finished, "run  finished  step 40  loss ");
  expect_part(finished, "hash of parameters: " + pool_.summary().at("parameters_hash").get<std::string>());
  expect_part(finished, "best checkpoint: run/checkpoints/best.safetensors, of step ");
  EXPECT_EQ(pool_.summary().at("outcome"), "finished");
  EXPECT_TRUE(pool_.summary().at("resumed").is_null());
  const auto node = status_of_folder();
  EXPECT_TRUE(node.at("nodes").empty());
  EXPECT_EQ(node.at("departures").size(), 2u);
  expect_part(output_of({"inspect", "run"}), "which has the lowest evaluation loss: ");

  const std::string resumed = output_of({"train", "run", "--steps", "50"});
  expect_part(resumed, " of it since the resume at step 40\n");
  expect_part(resumed, "  since the resume:\n");
  EXPECT_EQ(pool_.summary().at("resumed").at("step"), 40);

  Process stopped = pool_.train(1, {"--steps", "100000000", "--checkpoint-seconds", "0.1"});
  stopped.wait_for_line("checkpoint of step");
  stopped.signal(SIGINT);
  EXPECT_EQ(stopped.wait(), 4) << stopped.said();
  EXPECT_EQ(pool_.summary().at("outcome"), "stopped");
  expect_part(output_of({"status", "run"}), "go on with: w5xde train run --nodes 1\n");
}

TEST_F(SeeingTest, every_step_of_a_short_run_is_in_its_picture_and_in_its_table) {
  EXPECT_EQ(pool_.train(1, {"--steps", "60"}).wait(), 0);
  EXPECT_EQ(output_of({"plot", "run", "-o", "loss.svg", "--csv", "loss.csv"}), "");
  const std::string table = read("loss.csv");
  EXPECT_EQ(std::ranges::count(table, '\n'), 1 + 60) << table;
  const std::string picture = read("loss.svg");
  const std::regex training("<polyline class=\"plain\" stroke=\"[^\"]*\" points=\"([^\"]*)\"/>");
  std::smatch found;
  std::size_t longest = 0;
  for (auto at = picture.cbegin(); std::regex_search(at, picture.cend(), found, training);
       at = found[0].second) {
    const std::string points = found[1];
    longest = std::max(longest, static_cast<std::size_t>(std::ranges::count(points, ',')));
  }
  EXPECT_EQ(longest, 60u) << picture;
  EXPECT_EQ(output_of({"plot", "run", "run", "-o", "two.csv"}), "");
  EXPECT_EQ(std::ranges::count(read("two.csv"), '\n'), 1 + 120);

  const auto refused = [&](const Words& arguments) {
    Process process = pool_.start(arguments);
    EXPECT_EQ(process.wait(), 2) << process.said();
    return process.said();
  };
  expect_part(refused({"plot", "run"}), "-o loss.svg");
  expect_part(refused({"plot", "run", "-o", "loss.png"}), ".svg");
  fs::create_directories(pool_.folder() / "empty/checkpoints");
  std::ofstream(pool_.folder() / "empty/run.toml") << "";
  expect_part(refused({"plot", "empty", "-o", "loss.svg"}), "train it first: w5xde train empty");
}

TEST_F(SeeingTest, runs_are_compared_while_they_train_and_under_long_names) {
  const std::string long_name = "a-run-with-a-name-that-is-longer-than-any-column-would-be";
  EXPECT_EQ(pool_.start(Words{"train", long_name, "--steps", "5", "--lr", "0.125"} + kMlp).wait(), 0);
  Process coordinator = pool_.serve();
  Process node = pool_.join("desk");
  pool_.wait_for("step", 1);
  const std::string compared = output_of({"compare", long_name, "run", long_name});
  expect_part(compared, "still training");
  expect_part(compared, "0.125");
  expect_part(compared, "(default)");
  std::size_t width = 0;
  std::istringstream lines(compared);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("state") && !line.starts_with("steps")) continue;
    EXPECT_TRUE(width == 0 || line.size() == width) << compared;
    width = line.size();
  }
  EXPECT_GT(width, 2 * long_name.size());
}

TEST_F(SeeingTest, a_silent_run_prints_its_summary_unless_told_not_to_and_writes_it_where_it_is_asked_to) {
  const Words train = Words{"train", "quiet", "--log", "silent", "--json", "summary.json"} + kMlp;
  const std::string printed = output_of(train + Words{"--steps", "5"});
  EXPECT_TRUE(printed.starts_with("sync training with 2 nodes took ")) << printed;
  EXPECT_EQ(nlohmann::json::parse(read("summary.json")).at("steps"), 5);
  EXPECT_EQ(output_of(train + Words{"--steps", "9", "--no-summary"}), "");
  EXPECT_EQ(nlohmann::json::parse(read("summary.json")).at("steps"), 9);
}

}  // namespace
}  // namespace w5xde
