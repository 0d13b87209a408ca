#include "record/run_database.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <fstream>

#include "base/limits.h"
#include "record/sqlite.h"
#include "support/full_disk.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

namespace fs = std::filesystem;
using Db = RunDatabase;

class RunDatabaseTest : public testing::Test {
 protected:
  Db opened() const {
    auto database = Db::open(path_);
    EXPECT_TRUE(database.ok()) << database.error().to_string();
    return std::move(database).value();
  }

  static void add_steps(Db& database, std::uint64_t count) {
    for (std::uint64_t step = 1; step <= count; ++step) {
      ASSERT_TRUE(database.add(Db::StepRow{.step = step, .loss = 1.0 / static_cast<double>(step)}).ok());
    }
  }

  static std::vector<std::uint64_t> numbers_of(const std::vector<Db::StepRow>& rows) {
    std::vector<std::uint64_t> numbers;
    for (const auto& row : rows) numbers.push_back(row.step);
    return numbers;
  }

  TemporaryFolder folder_;
  fs::path path_ = folder_ / "run.db";
};

TEST_F(RunDatabaseTest, gives_back_every_kind_of_row) {
  {
    Db database = opened();
    ASSERT_TRUE(database
                    .add(Db::StepRow{.step = 20,
                                     .steps = 10,
                                     .loss = 0.1,
                                     .learning_rate = 1e-3,
                                     .samples = 2560,
                                     .batches_per_second = 12.5,
                                     .nodes = 3,
                                     .seconds = 1.75})
                    .ok());
    ASSERT_TRUE(
        database.add(Db::EvaluationRow{.step = 20, .loss = 0.2, .accuracy = 0.97, .samples = 10'000}).ok());
    ASSERT_TRUE(database
                    .add(Db::NodeRow{.name = "né",
                                     .peer = "10.0.0.2:5555",
                                     .engine = "torch",
                                     .joined_seconds = 0.5,
                                     .left_seconds = 9.5,
                                     .reason = "it said 'bye'",
                                     .batches = 77})
                    .ok());
    ASSERT_TRUE(database.add(Db::EventRow{.seconds = 0.5, .text = "né joined"}).ok());
    ASSERT_TRUE(
        database.add(Db::CheckpointRow{.step = 20, .file = "step-20", .bytes = 1'720, .write_seconds = 0.01})
            .ok());
    ASSERT_TRUE(database.flush().ok());
  }
  const Db database = opened();
  const auto steps = database.steps(10);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].step, 20u);
  EXPECT_EQ(steps[0].steps, 10u);
  EXPECT_EQ(steps[0].loss, 0.1);
  EXPECT_EQ(steps[0].learning_rate, 1e-3);
  EXPECT_EQ(steps[0].samples, 2560u);
  EXPECT_EQ(steps[0].batches_per_second, 12.5);
  EXPECT_EQ(steps[0].nodes, 3u);
  EXPECT_EQ(steps[0].seconds, 1.75);
  const auto evaluations = database.evaluations();
  ASSERT_EQ(evaluations.size(), 1u);
  EXPECT_EQ(evaluations[0].step, 20u);
  EXPECT_EQ(evaluations[0].loss, 0.2);
  EXPECT_EQ(evaluations[0].accuracy, 0.97);
  EXPECT_EQ(evaluations[0].samples, 10'000u);
  const auto nodes = database.nodes();
  ASSERT_EQ(nodes.size(), 1u);
  EXPECT_EQ(nodes[0].name, "né");
  EXPECT_EQ(nodes[0].peer, "10.0.0.2:5555");
  EXPECT_EQ(nodes[0].engine, "torch");
  EXPECT_EQ(nodes[0].joined_seconds, 0.5);
  EXPECT_EQ(nodes[0].left_seconds, 9.5);
  EXPECT_EQ(nodes[0].reason, "it said 'bye'");
  EXPECT_EQ(nodes[0].batches, 77u);
  const auto events = database.events(10);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].seconds, 0.5);
  EXPECT_EQ(events[0].text, "né joined");
  const auto checkpoints = database.checkpoints();
  ASSERT_EQ(checkpoints.size(), 1u);
  EXPECT_EQ(checkpoints[0].step, 20u);
  EXPECT_EQ(checkpoints[0].file, "step-20");
  EXPECT_EQ(checkpoints[0].bytes, 1'720u);
  EXPECT_EQ(checkpoints[0].write_seconds, 0.01);
}

TEST_F(RunDatabaseTest, keeps_a_loss_that_is_no_number_as_one) {
  Db database = opened();
  ASSERT_TRUE(database.add(Db::StepRow{.step = 1, .loss = std::nan("")}).ok());
  EXPECT_TRUE(std::isnan(database.steps(1).at(0).loss));
}

TEST_F(RunDatabaseTest, has_one_row_for_a_stay_of_a_node) {
  Db database = opened();
  Db::NodeRow node{.name = "a", .peer = "1.2.3.4:5", .joined_seconds = 1.5};
  ASSERT_TRUE(database.add(node).ok());
  EXPECT_TRUE(std::isnan(database.nodes().at(0).left_seconds));
  node.left_seconds = 4;
  node.reason = "killed";
  ASSERT_TRUE(database.add(node).ok());
  node.joined_seconds = 5;
  ASSERT_TRUE(database.add(node).ok());
  const auto nodes = database.nodes();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(nodes[0].left_seconds, 4);
  EXPECT_EQ(nodes[0].reason, "killed");
}

TEST_F(RunDatabaseTest, forgets_steps_past_the_checkpoint_and_keeps_what_happened) {
  Db database = opened();
  add_steps(database, 10);
  for (const std::uint64_t step : {5u, 10u}) {
    ASSERT_TRUE(database.add(Db::EvaluationRow{.step = step}).ok());
    ASSERT_TRUE(database.add(Db::CheckpointRow{.step = step}).ok());
    ASSERT_TRUE(database.add(Db::EventRow{.text = "evaluated"}).ok());
  }
  ASSERT_TRUE(database.flush().ok());
  ASSERT_TRUE(database.resume({.step = 5, .checkpoint_step = 5}).ok());
  const Db reader = Db::look(path_).value();  // it is committed, so another connection sees it
  EXPECT_EQ(numbers_of(reader.steps(100)), (std::vector<std::uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(reader.evaluations().size(), 1u);
  EXPECT_EQ(reader.checkpoints().size(), 1u);
  EXPECT_EQ(reader.events(100).size(), 2u);
}

TEST_F(RunDatabaseTest, checkpoints_of_a_run_whose_rows_count_updates_are_forgotten_by_their_own_number) {
  Db database = opened();
  add_steps(database, 10);
  for (const std::uint64_t step : {2u, 4u}) ASSERT_TRUE(database.add(Db::CheckpointRow{.step = step}).ok());
  ASSERT_TRUE(database.resume({.step = 7, .checkpoint_step = 2}).ok());
  EXPECT_EQ(numbers_of(database.steps(100)).back(), 7u);
  ASSERT_EQ(database.checkpoints().size(), 1u);
  EXPECT_EQ(database.checkpoints().at(0).step, 2u);
}

TEST_F(RunDatabaseTest,
       nodes_that_were_in_when_the_coordinator_was_killed_have_left_when_the_run_is_resumed) {
  Db database = opened();
  ASSERT_TRUE(database.add(Db::NodeRow{.name = "gone", .joined_seconds = 1, .left_seconds = 2}).ok());
  ASSERT_TRUE(database.add(Db::NodeRow{.name = "in", .joined_seconds = 1}).ok());
  ASSERT_TRUE(database.add(Db::NodeRow{.name = "late", .joined_seconds = 9}).ok());
  ASSERT_TRUE(database.resume({.step = 5, .checkpoint_step = 5, .seconds = 6}).ok());
  const auto nodes = database.nodes();
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_EQ(nodes[0].left_seconds, 2);
  EXPECT_EQ(nodes[1].left_seconds, 6);
  EXPECT_EQ(nodes[1].reason, "the coordinator was killed");
  EXPECT_EQ(nodes[2].left_seconds, 9) << "nobody leaves before it joined";
}

TEST_F(RunDatabaseTest, the_speed_of_a_run_is_that_of_all_of_its_steps) {
  Db database = opened();
  EXPECT_EQ(database.batches_per_second(), 0);
  ASSERT_TRUE(database.add(Db::StepRow{.step = 1, .batches_per_second = 10, .seconds = 3}).ok());
  ASSERT_TRUE(database.add(Db::StepRow{.step = 2, .batches_per_second = 50, .seconds = 4}).ok());
  EXPECT_DOUBLE_EQ(database.batches_per_second(), 20);
}

TEST_F(RunDatabaseTest, thins_steps_evenly_from_the_first_to_the_last) {
  Db database = opened();
  add_steps(database, 101);
  EXPECT_EQ(numbers_of(database.steps(5)), (std::vector<std::uint64_t>{1, 26, 51, 76, 101}));
  EXPECT_EQ(numbers_of(database.steps(2)), (std::vector<std::uint64_t>{1, 101}));
  EXPECT_EQ(numbers_of(database.steps(1)), (std::vector<std::uint64_t>{101}));
  EXPECT_TRUE(database.steps(0).empty());
  EXPECT_EQ(database.steps(101).size(), 101u);
  EXPECT_EQ(database.steps(std::numeric_limits<std::size_t>::max()).size(), 101u);
  for (std::size_t rows_max = 1; rows_max <= 101; ++rows_max) {
    const auto steps = database.steps(rows_max);
    ASSERT_EQ(steps.size(), rows_max);
    EXPECT_EQ(steps.back().step, 101u);
  }
}

// Rows as a run of that many steps adds them.
void add_run(Db& database, std::uint64_t steps) {
  std::uint64_t since = 0;
  for (std::uint64_t step = 1; step <= steps; ++step) {
    if (++since < Db::steps_of_row(step)) continue;
    ASSERT_TRUE(database
                    .add(Db::StepRow{.step = step,
                                     .steps = since,
                                     .loss = static_cast<double>(step) - (static_cast<double>(since) - 1) / 2,
                                     .learning_rate = static_cast<double>(step),
                                     .samples = 8 * since,
                                     .batches_per_second = 50,
                                     .nodes = 3,
                                     .seconds = static_cast<double>(step) / 10})
                    .ok());
    since = 0;
  }
}

TEST_F(RunDatabaseTest, a_short_run_has_a_row_of_every_step_and_a_long_one_rows_that_are_evenly_spread) {
  for (const std::uint64_t steps : {625u, 1999u, 2000u, 2001u, 5000u, 64'000u, 100'000u}) {
    std::filesystem::remove(path_);
    Db database = opened();
    add_run(database, steps);
    const auto rows = database.steps(10'000);
    EXPECT_LT(rows.size(), Db::kStepRowsMax) << steps;
    if (steps < Db::kStepRowsMax) {
      EXPECT_EQ(rows.size(), steps);
    } else {
      EXPECT_GE(rows.size(), Db::kStepRowsMax / 2) << steps;
    }
    std::uint64_t covered = 0;
    for (const auto& row : rows) {
      EXPECT_EQ(row.steps, rows.front().steps) << "step " << row.step << " of " << steps;
      EXPECT_DOUBLE_EQ(row.loss, static_cast<double>(row.step) - (static_cast<double>(row.steps) - 1) / 2);
      EXPECT_EQ(row.learning_rate, static_cast<double>(row.step)) << "of the last of its steps";
      EXPECT_EQ(row.samples, 8 * row.steps);
      EXPECT_NEAR(row.batches_per_second, 50, 1e-6);
      EXPECT_EQ(row.nodes, 3u);
      EXPECT_DOUBLE_EQ(row.seconds, static_cast<double>(row.step) / 10);
      covered += row.steps;
      EXPECT_EQ(row.step, covered) << "none is left out";
    }
  }
}

TEST_F(RunDatabaseTest, merged_rows_of_a_resumed_run_end_with_its_checkpoint_and_go_on_from_there) {
  {
    Db database = opened();
    add_run(database, 5000);
    ASSERT_TRUE(database.resume({.step = 4000, .checkpoint_step = 4000}).ok());
    EXPECT_EQ(database.steps(10'000).back().step, 4000u);
  }
  Db database = opened();
  EXPECT_EQ(database.steps(10'000).size(), 1000u);
  for (std::uint64_t step = 4004; step <= 8000; step += 4)
    ASSERT_TRUE(database.add(Db::StepRow{.step = step, .steps = 4}).ok());
  const auto rows = database.steps(10'000);
  EXPECT_EQ(rows.size(), 1000u) << "what was there is counted too";
  EXPECT_EQ(rows.back().steps, 8u);
}

TEST_F(RunDatabaseTest, losses_that_are_unknown_do_not_spoil_those_they_are_merged_with) {
  Db database = opened();
  for (std::uint64_t step = 1; step <= Db::kStepRowsMax; ++step) {
    const double loss = step == 1 || step > 1998 ? std::nan("") : 7;
    ASSERT_TRUE(database.add(Db::StepRow{.step = step, .loss = loss}).ok());
  }
  const auto rows = database.steps(10'000);
  EXPECT_EQ(rows.front().loss, 7);
  EXPECT_TRUE(std::isnan(rows.back().loss));
}

TEST_F(RunDatabaseTest, a_stretch_begins_with_the_last_row_of_the_warm_up) {
  Db database = opened();
  EXPECT_FALSE(database.stretch_after(0).has_value());
  const std::pair<std::uint64_t, double> rows[] = {{3, 2.5}, {10, 4}, {40, 5.5}, {60, 6}};
  for (const auto& [step, seconds] : rows) {
    ASSERT_TRUE(database.add(Db::StepRow{.step = step, .seconds = seconds}).ok());
  }
  const auto expect = [&](double warm_up, std::uint64_t steps, double seconds) {
    const auto stretch = database.stretch_after(warm_up);
    ASSERT_TRUE(stretch.has_value()) << warm_up;
    EXPECT_EQ(stretch->steps, steps) << warm_up;
    EXPECT_DOUBLE_EQ(stretch->seconds, seconds) << warm_up;
  };
  expect(5, 50, 2);
  expect(4, 50, 2);
  expect(3.9, 57, 3.5);
  expect(1, 57, 3.5);  // the first step took longer than the warm-up: it is no part of the stretch
  EXPECT_FALSE(database.stretch_after(6).has_value());
}

TEST_F(RunDatabaseTest, rows_without_time_between_them_are_no_stretch) {
  Db database = opened();
  add_steps(database, 3);
  EXPECT_FALSE(database.stretch_after(0).has_value());
}

TEST_F(RunDatabaseTest, gives_the_last_events_in_order) {
  Db database = opened();
  for (const char* text : {"one", "two", "three"}) ASSERT_TRUE(database.add(Db::EventRow{.text = text}).ok());
  const auto events = database.events(2);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].text, "two");
  EXPECT_EQ(events[1].text, "three");
  EXPECT_EQ(database.events(std::numeric_limits<std::size_t>::max()).size(), 3u);
}

TEST_F(RunDatabaseTest, keeps_the_newest_nodes_and_events_however_many_come_and_go) {
  Db database = opened();
  const std::uint64_t rows_max = Limits{}.database_rows_max;
  for (std::uint64_t i = 0; i < rows_max + 50; ++i) {
    const auto seconds = static_cast<double>(i);
    ASSERT_TRUE(database.add(Db::NodeRow{.name = "n", .peer = "p", .joined_seconds = seconds}).ok());
    ASSERT_TRUE(database.add(Db::EventRow{.seconds = seconds, .text = "n joined"}).ok());
  }
  const auto nodes = database.nodes();
  ASSERT_EQ(nodes.size(), rows_max);
  EXPECT_EQ(nodes.front().joined_seconds, 50);
  const auto events = database.events(2 * rows_max);
  ASSERT_EQ(events.size(), rows_max);
  EXPECT_EQ(events.front().seconds, 50);
}

TEST_F(RunDatabaseTest, is_read_by_others_up_to_the_last_flush) {
  Db database = opened();
  add_steps(database, 3);
  ASSERT_TRUE(database.flush().ok());
  auto reader = Db::look(path_);
  ASSERT_TRUE(reader.ok()) << reader.error().to_string();
  ASSERT_TRUE(database.add(Db::StepRow{.step = 4}).ok());
  EXPECT_EQ(reader->steps(10).size(), 3u);
  ASSERT_TRUE(database.flush().ok());
  EXPECT_EQ(reader->steps(10).size(), 4u);
  EXPECT_EQ(reader->add(Db::StepRow{.step = 5}).error().kind, ErrorKind::system);
}

TEST_F(RunDatabaseTest, commits_what_is_open_when_it_goes) {
  {
    Db database = opened();
    add_steps(database, 2);
  }
  EXPECT_EQ(opened().steps(10).size(), 2u);
  EXPECT_FALSE(fs::exists(path_.string() + "-wal"));
}

TEST_F(RunDatabaseTest, of_a_killed_process_has_all_that_was_flushed) {
  const pid_t child = ::fork();
  if (child == 0) {
    Db database = opened();
    add_steps(database, 5);
    const bool flushed = database.flush().ok();
    add_steps(database, 9);  // not flushed
    ::_exit(flushed ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(opened().steps(100).size(), 5u);
}

TEST_F(RunDatabaseTest, that_another_program_has_locked_is_an_error_that_is_waited_for_once) {
  Db owner = opened();
  Db database = opened();
  ASSERT_TRUE(owner.add(Db::StepRow{.step = 1}).ok());  // its transaction is open now
  const Status refused = database.add(Db::StepRow{.step = 2});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::system);
  EXPECT_EQ(refused.error().message, path_.string() +
                                         ": database is locked; another program has it locked: "
                                         "close that program");
  const auto before = std::chrono::steady_clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(database.add(Db::StepRow{.step = 2}).ok());
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(10));  // not one second each

  ASSERT_TRUE(owner.flush().ok());
  EXPECT_TRUE(database.add(Db::StepRow{.step = 2}).ok());
  EXPECT_TRUE(database.flush().ok());
  EXPECT_EQ(owner.steps(10).size(), 2u);
}

TEST_F(RunDatabaseTest, on_a_full_disk_gives_errors_and_works_again_once_there_is_room) {
  Db database = opened();
  add_steps(database, 10);
  ASSERT_TRUE(database.flush().ok());
  const std::string large(100'000, 'x');
  {
    const FullDisk full(200'000);
    Status status;
    for (int i = 0; i < 50 && status.ok(); ++i) {
      status = database.add(Db::EventRow{.text = large});
      if (status.ok()) status = database.flush();
    }
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().kind, ErrorKind::system);
    EXPECT_NE(status.error().message.find("disk"), std::string::npos) << status.error().message;
  }
  const std::size_t kept = database.events(100).size();
  const Status added = database.add(Db::EventRow{.text = "there is room"});
  ASSERT_TRUE(added.ok()) << added.error().to_string();
  ASSERT_TRUE(database.flush().ok());
  EXPECT_EQ(database.steps(100).size(), 10u);
  EXPECT_EQ(database.events(100).size(), kept + 1);
}

TEST_F(RunDatabaseTest, that_cannot_be_made_says_what_to_do) {
  const auto missing = Db::open(folder_ / "missing" / "run.db");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().to_string(),
            "system: " + (folder_ / "missing" / "run.db").string() +
                ": unable to open database file; check that its folder exists and may be written");
  EXPECT_EQ(Db::look(path_).error().kind, ErrorKind::system);
  EXPECT_FALSE(fs::exists(path_));
}

TEST_F(RunDatabaseTest, that_is_no_database_is_corrupt) {
  std::ofstream(path_) << std::string(5000, 'x');
  EXPECT_EQ(Db::open(path_).error().kind, ErrorKind::corrupt);
  EXPECT_EQ(Db::look(path_).error().kind, ErrorKind::corrupt);
}

TEST_F(RunDatabaseTest, of_another_program_is_not_looked_at) {
  {
    const auto other = Sqlite::open(path_, Sqlite::Access::write);
    ASSERT_TRUE(other.ok());
    ASSERT_TRUE((*other)->run("CREATE TABLE cats (name TEXT)").ok());
  }
  EXPECT_EQ(Db::look(path_).error().kind, ErrorKind::invalid);
}

TEST_F(RunDatabaseTest, of_a_newer_schema_is_incompatible) {
  opened();
  {
    const auto newer = Sqlite::open(path_, Sqlite::Access::write);
    ASSERT_TRUE(newer.ok());
    ASSERT_TRUE((*newer)->run("UPDATE schema SET version = 99").ok());
  }
  EXPECT_EQ(Db::open(path_).error().kind, ErrorKind::incompatible);
  EXPECT_EQ(Db::look(path_).error().kind, ErrorKind::incompatible);
}

TEST_F(RunDatabaseTest, in_a_folder_that_may_not_be_written_can_still_be_looked_at) {
  path_ = folder_ / "run #1?.db";  // a name that a URI would misread
  {
    Db database = opened();
    add_steps(database, 3);
  }
  fs::permissions(folder_.path(), fs::perms(0555));
  const pid_t child = ::fork();
  if (child == 0) {  // root may write anything; nobody may not
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(100);
    if (Db::open(path_).ok()) ::_exit(101);
    const auto database = Db::look(path_);
    ::_exit(database.ok() ? static_cast<int>(database->steps(10).size()) : 102);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 3);
  fs::permissions(folder_.path(), fs::perms(0755));
}

}  // namespace
}  // namespace w5xde
