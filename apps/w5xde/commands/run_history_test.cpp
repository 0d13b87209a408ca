#include "commands/run_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <regex>

#include "record/run_folder.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

using Db = RunDatabase;

class RunHistoryTest : public testing::Test {
 protected:
  // A run folder with a database as a run of this many steps leaves it.
  std::string run(const std::string& name, std::uint64_t steps, bool evaluated = true) const {
    const std::string path = (folder_ / name).string();
    const auto folder = RunFolder::open(path).value();
    Db database = Db::open(folder.database()).value();
    for (std::uint64_t step = 1; step <= steps; ++step) {
      EXPECT_TRUE(database
                      .add(Db::StepRow{.step = step,
                                       .loss = 2.0 / static_cast<double>(step),
                                       .learning_rate = 0.1,
                                       .batches_per_second = 50,
                                       .nodes = 2,
                                       .seconds = static_cast<double>(step) / 4})
                      .ok());
    }
    if (evaluated) {
      EXPECT_TRUE(database.add(Db::EvaluationRow{.step = 2, .loss = 1.5, .accuracy = 0.5}).ok());
      EXPECT_TRUE(database.add(Db::EvaluationRow{.step = steps + 1, .loss = 0.5, .accuracy = 0.75}).ok());
    }
    return path;
  }

  TemporaryFolder folder_;
};

std::vector<std::size_t> points_of_lines(const std::string& svg, const std::string& style) {
  const std::regex line("<polyline class=\"" + style + "\" stroke=\"[^\"]*\" points=\"([^\"]*)\"/>");
  std::vector<std::size_t> points;
  for (std::sregex_iterator found(svg.begin(), svg.end(), line), end; found != end; ++found) {
    const std::string drawn = (*found)[1];
    points.push_back(static_cast<std::size_t>(std::ranges::count(drawn, ',')));
  }
  return points;
}

std::string read_failure(const std::string& run) {
  const auto history = read_history(run);
  return history.ok() ? "read" : history.error().message;
}

TEST_F(RunHistoryTest, the_picture_has_the_points_of_the_database) {
  const std::string svg = to_svg({read_history(run("a", 60)).value()});
  // The first of each style is the legend's.
  EXPECT_EQ(points_of_lines(svg, "plain"), (std::vector<std::size_t>{2, 60}));
  EXPECT_EQ(points_of_lines(svg, "dotted"), (std::vector<std::size_t>{2, 2, 2})) << "loss, and accuracy";
  EXPECT_NE(svg.find("<title>61: 0.75</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">evaluation accuracy</text>"), std::string::npos) << svg;
}

TEST_F(RunHistoryTest, many_points_are_drawn_behind_the_mean_of_their_neighbours) {
  const std::string svg = to_svg({read_history(run("a", 625, false)).value()});
  EXPECT_EQ(points_of_lines(svg, "faint"), (std::vector<std::size_t>{625}));
  EXPECT_EQ(points_of_lines(svg, "plain"), (std::vector<std::size_t>{2, 625}));
  EXPECT_EQ(svg.find("accuracy"), std::string::npos) << "there is none";
}

TEST_F(RunHistoryTest, several_runs_have_a_line_and_a_name_each) {
  const std::string one = run("one", 30), other = run("other", 50);
  const std::string svg = to_svg({read_history(one).value(), read_history(other).value()});
  EXPECT_EQ(points_of_lines(svg, "plain"), (std::vector<std::size_t>{2, 2, 30, 50}));
  EXPECT_NE(svg.find("one: training loss</text>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("other: evaluation loss</text>"), std::string::npos) << svg;
}

TEST_F(RunHistoryTest, the_table_has_a_line_for_each_step_and_each_evaluation) {
  RunHistory history = read_history(run("a", 3)).value();
  history.name = "a,b";
  history.steps[2].loss = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(to_csv({history}),
            "run,step,seconds,training_loss,learning_rate,batches_per_second,nodes,evaluation_loss,"
            "evaluation_accuracy\n"
            "\"a,b\",1,0.25,2,0.1,50,2,,\n"
            "\"a,b\",2,0.5,1,0.1,50,2,1.5,0.5\n"
            "\"a,b\",3,0.75,,0.1,50,2,,\n"
            "\"a,b\",4,,,,,,0.5,0.75\n");
}

TEST_F(RunHistoryTest, a_run_without_a_step_and_what_is_no_run_are_refused_with_what_to_do) {
  const std::string empty = run("empty", 0, false);
  EXPECT_EQ(read_failure(empty),
            empty + " has no step yet that could be drawn; train it first: w5xde train " + empty);
  EXPECT_EQ(read_failure((folder_ / "nowhere").string()),
            (folder_ / "nowhere").string() + " is not a folder");
}

}  // namespace
}  // namespace w5xde
