#include "coordinator/recorder.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>

#include "net/asio_loop.h"
#include "support/full_disk.h"
#include "support/patience.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class RecorderTest : public testing::Test {
 protected:
  RecorderTest() : folder_(RunFolder::open(files_ / "run").value()) {
    values_.assign(layout_->floats(), 0.25f);
  }

  std::vector<NamedBlock> blocks() const { return {{group_, layout_.get(), values_}}; }
  Recorder::Written write(Recorder& recorder, std::uint64_t step, bool best = false) {
    std::optional<Recorder::Written> written;
    recorder.checkpoint({.step = step, .version = step}, blocks(), best, 2,
                        [&](const Recorder::Written& done) {
                          EXPECT_TRUE(loop_.on_loop());
                          written = done;
                        });
    EXPECT_FALSE(written.has_value()) << "it is told from the loop, later";
    EXPECT_TRUE(run_until(loop_, [&] { return written.has_value(); }));
    return *written;
  }

  AsioLoop loop_;
  TemporaryFolder files_;
  RunFolder folder_;
  Log log_{LogTier::silent};
  std::shared_ptr<const BlockLayout> layout_ = BlockLayout::make({{"weight", {1000}}}, 2000).value();
  std::vector<float> values_;
  std::string group_ = "parameters";
};

TEST_F(RecorderTest, a_checkpoint_is_on_disk_and_in_the_database_when_its_writing_is_told) {
  Recorder recorder(loop_, folder_, Recorder::Database::kept, log_);
  for (std::uint64_t step = 1; step <= 3; ++step) {
    const auto written = write(recorder, step, step == 2);
    ASSERT_TRUE(written.status.ok()) << written.status.error().message;
    EXPECT_EQ(written.step, step);
    EXPECT_EQ(CheckpointFile::open(folder_.checkpoint_path(step))->info().step, step);
  }
  EXPECT_EQ(folder_.checkpoints().size(), 2u) << "two are kept";
  EXPECT_EQ(CheckpointFile::open(folder_.best_checkpoint())->info().step, 2u);
  const auto rows = RunDatabase::look(folder_.database())->checkpoints();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[2].step, 3u);
  EXPECT_EQ(rows[2].bytes, std::filesystem::file_size(folder_.checkpoint_path(3)));
}

TEST_F(RecorderTest, a_checkpoint_is_written_beside_the_loop_and_nobody_is_told_who_is_gone) {
  bool told = false;
  {
    Recorder recorder(loop_, folder_, Recorder::Database::kept, log_);
    recorder.checkpoint({.step = 1}, blocks(), false, 2, [&](const Recorder::Written&) { told = true; });
  }
  EXPECT_TRUE(CheckpointFile::open(folder_.checkpoint_path(1)).ok()) << "the loop has not run at all";
  loop_.post([this] { loop_.stop(); });
  loop_.run();
  EXPECT_FALSE(told);
}

// A mask of attention is a buffer of infinities.
TEST_F(RecorderTest, parameters_that_are_no_numbers_are_not_saved_and_infinite_buffers_are) {
  Recorder recorder(loop_, folder_, Recorder::Database::kept, log_);
  values_[7] = -std::numeric_limits<float>::infinity();
  EXPECT_EQ(write(recorder, 1).status.error().kind, ErrorKind::diverged);
  EXPECT_TRUE(folder_.checkpoints().empty());
  group_ = "buffers";
  EXPECT_TRUE(write(recorder, 1).status.ok());
}

TEST_F(RecorderTest, a_full_disk_is_reported_and_the_last_checkpoint_stays) {
  Recorder recorder(loop_, folder_, Recorder::Database::kept, log_);
  ASSERT_TRUE(write(recorder, 1).status.ok());
  {
    const FullDisk full(2000);
    const auto written = write(recorder, 2);
    ASSERT_FALSE(written.status.ok());
    EXPECT_EQ(written.step, 2u);
    EXPECT_EQ(written.status.error().kind, ErrorKind::system) << written.status.error().message;
  }
  EXPECT_EQ(folder_.newest()->value().info().step, 1u);
  EXPECT_EQ(write(recorder, 3).status.ok(), true) << "with room again, it goes on";
}

TEST_F(RecorderTest, rows_are_written_when_it_goes) {
  {
    Recorder recorder(loop_, folder_, Recorder::Database::kept, log_);
    for (std::uint64_t step = 1; step <= 50; ++step)
      recorder.add(RunDatabase::StepRow{.step = step, .loss = 1});
    recorder.add(RunDatabase::EvaluationRow{.step = 50, .loss = 0.5});
    recorder.add(RunDatabase::EventRow{1, "hello"});
  }
  const auto database = RunDatabase::look(folder_.database()).value();
  EXPECT_EQ(database.steps(1000).size(), 50u);
  EXPECT_EQ(database.evaluations().size(), 1u);
  EXPECT_EQ(database.events(10).size(), 1u);
}

TEST_F(RecorderTest, steps_that_are_handed_over_together_are_on_disk_with_their_checkpoint) {
  Recorder recorder(loop_, folder_, Recorder::Database::kept, log_);
  for (std::uint64_t step = 1; step <= 1000; ++step) recorder.add(RunDatabase::StepRow{.step = step});
  ASSERT_TRUE(write(recorder, 1000).status.ok());
  EXPECT_EQ(RunDatabase::look(folder_.database())->steps(2000).size(), 1000u);
}

TEST_F(RecorderTest, a_resumed_run_begins_with_the_rows_of_its_checkpoint) {
  {
    Recorder recorder(loop_, folder_, Recorder::Database::kept, log_);
    for (std::uint64_t step = 1; step <= 9; ++step) recorder.add(RunDatabase::StepRow{.step = step});
  }
  {
    Recorder recorder(loop_, folder_, Recorder::Database::kept, log_);
    recorder.resume({.step = 4, .checkpoint_step = 4});
  }
  EXPECT_EQ(RunDatabase::look(folder_.database())->steps(1000).size(), 4u);
}

TEST_F(RecorderTest, without_a_database_there_are_checkpoints_all_the_same) {
  std::filesystem::create_directory(folder_.database());  // a folder cannot be opened as one
  const auto log = Log::to_file(LogTier::silent, files_ / "log").value();
  {
    Recorder recorder(loop_, folder_, Recorder::Database::kept, log);
    recorder.add(RunDatabase::EventRow{1, "lost"});
    EXPECT_TRUE(write(recorder, 1).status.ok());
  }
  EXPECT_EQ(folder_.checkpoints().size(), 1u);
}

}  // namespace
}  // namespace w5xde
