#include "record/run_folder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <functional>
#include <thread>

#include "base/hash.h"
#include "support/temporary_folder.h"

namespace w5xde {
namespace {

namespace fs = std::filesystem;

// Another process, which does `work`, says its result and then waits until it is told to go, or killed.
class Child {
 public:
  explicit Child(const std::function<std::string()>& work) {
    std::array<int, 2> said{};
    std::array<int, 2> go{};
    EXPECT_EQ(::pipe(said.data()), 0);
    EXPECT_EQ(::pipe(go.data()), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      const std::string result = work() + "\n";
      ssize_t ignored = ::write(said[1], result.data(), result.size());
      ::close(go[1]);
      char byte = 0;
      ignored = ::read(go[0], &byte, 1);
      ::_exit(ignored < 0 ? 1 : 0);
    }
    ::close(said[1]);
    ::close(go[0]);
    go_ = go[1];
    for (char byte = 0; ::read(said[0], &byte, 1) == 1 && byte != '\n';) said_ += byte;
    ::close(said[0]);
  }
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t pid() const { return pid_; }
  const std::string& said() const { return said_; }

  void kill() {
    ::kill(pid_, SIGKILL);
    end();
  }
  void end() {
    if (pid_ == 0) return;
    ::close(go_);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  int go_ = -1;
  std::string said_;
};

class RunFolderTest : public testing::Test {
 protected:
  static RunFolder opened(const fs::path& path) {
    auto run = RunFolder::open(path);
    EXPECT_TRUE(run.ok()) << run.error().to_string();
    return std::move(run).value();
  }

  static void write_step(const RunFolder& run, std::uint64_t step) {
    CheckpointInfo info;
    info.step = step;
    const Status written = write_checkpoint(run.checkpoint_path(step), info, {});
    ASSERT_TRUE(written.ok()) << written.error().to_string();
  }

  static std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::ranges::sort(names);
    return names;
  }

  static void put(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  fs::path checkpoints_folder() const { return path_ / "checkpoints"; }

  TemporaryFolder folder_;
  fs::path path_ = folder_ / "some" / "run";
};

TEST_F(RunFolderTest, is_created_with_all_that_leads_to_it) {
  const RunFolder run = opened(path_);
  EXPECT_EQ(run.path(), path_);
  EXPECT_EQ(run.run_toml(), path_ / "run.toml");
  EXPECT_EQ(run.database(), path_ / "run.db");
  EXPECT_EQ(run.summary(), path_ / "summary.json");
  EXPECT_EQ(run.model_file(), path_ / "model.pt");
  EXPECT_EQ(run.checkpoint_path(123), checkpoints_folder() / "step-000000123.safetensors");
  EXPECT_EQ(run.checkpoint_path(12'345'678'901), checkpoints_folder() / "step-12345678901.safetensors");
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"checkpoints", "lock"}));
  EXPECT_TRUE(run.checkpoints().empty());
  const auto newest = run.newest();
  ASSERT_TRUE(newest.ok());
  EXPECT_FALSE(newest->has_value());
}

TEST_F(RunFolderTest, is_refused_while_another_process_has_it_and_free_once_that_ends) {
  for (const bool killed : {false, true}) {
    std::optional<RunFolder> held;
    Child owner([&]() -> std::string {
      held = opened(path_);
      return "locked";
    });
    ASSERT_EQ(owner.said(), "locked");
    const auto refused = RunFolder::open(path_);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
    const std::string owner_name = "process " + std::to_string(owner.pid()) + " on ";
    EXPECT_NE(refused.error().message.find(owner_name), std::string::npos) << refused.error().message;
    EXPECT_NE(refused.error().message.find(path_.string()), std::string::npos) << refused.error().message;

    killed ? owner.kill() : owner.end();
    const auto free = RunFolder::open(path_);
    EXPECT_TRUE(free.ok()) << free.error().to_string();
  }
}

TEST_F(RunFolderTest, is_locked_within_one_process_too_and_as_long_as_a_copy_lives) {
  std::optional<RunFolder> first = opened(path_);
  std::optional<RunFolder> copy = first;
  first.reset();
  EXPECT_FALSE(RunFolder::open(path_).ok());
  copy.reset();
  EXPECT_TRUE(RunFolder::open(path_).ok());
}

TEST_F(RunFolderTest, says_who_has_it_how_to_ask_and_afterwards_how_to_go_on) {
  fs::create_directories(path_);
  put(path_ / "run.toml", "");
  EXPECT_FALSE(RunFolder::look(path_)->owner().has_it);
  EXPECT_EQ(RunFolder::look(path_)->owner().process, "");
  {
    const RunFolder run = opened(path_);
    run.introduce("127.0.0.1:5555", "w5xde train RUN");
    const auto owner = RunFolder::look(path_)->owner();
    EXPECT_TRUE(owner.has_it);
    EXPECT_TRUE(owner.process.starts_with("process " + std::to_string(::getpid()) + " on ")) << owner.process;
    EXPECT_EQ(owner.address, "127.0.0.1:5555");
    EXPECT_EQ(owner.command, "w5xde train RUN");
  }
  EXPECT_FALSE(RunFolder::look(path_)->owner().has_it);
  EXPECT_EQ(RunFolder::look(path_)->owner().command, "w5xde train RUN");
  const RunFolder again = opened(path_);
  EXPECT_TRUE(again.owner().has_it);
  EXPECT_EQ(again.owner().address, "") << "of the owner before";
}

TEST_F(RunFolderTest, says_by_which_certificate_its_owner_is_known) {
  const RunFolder run = opened(path_);
  run.introduce("127.0.0.1:5555", "w5xde serve RUN", "00ff");
  EXPECT_EQ(run.owner().certificate, "00ff");
  EXPECT_EQ(run.owner().address, "127.0.0.1:5555");
  EXPECT_EQ(run.owner().command, "w5xde serve RUN");
}

TEST_F(RunFolderTest, is_taken_while_others_look_who_has_it) {
  { const RunFolder first = opened(path_); }
  std::atomic<bool> done = false;
  std::thread looking([&] {
    while (!done) (void)RunFolder::look(path_)->owner();
  });
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(RunFolder::open(path_).ok());
  done = true;
  looking.join();
}

TEST_F(RunFolderTest, knows_what_its_best_checkpoint_says_of_itself) {
  const RunFolder run = opened(path_);
  EXPECT_FALSE(run.best().has_value());
  write_step(run, 7);
  ASSERT_TRUE(run.retain(7, true, 2).ok());
  EXPECT_EQ(run.best()->step, 7u);
}

TEST_F(RunFolderTest, can_be_looked_at_while_it_is_locked) {
  const RunFolder run = opened(path_);
  write_step(run, 7);
  const auto looking = RunFolder::look(path_);
  ASSERT_TRUE(looking.ok()) << looking.error().to_string();
  EXPECT_EQ(looking->newest().value()->info().step, 7u);
}

TEST_F(RunFolderTest, that_is_only_looked_at_is_not_created_nor_changed) {
  EXPECT_EQ(RunFolder::look(path_).error().to_string(), "invalid: " + path_.string() + " is not a folder");
  EXPECT_FALSE(fs::exists(path_));

  fs::create_directories(path_);
  put(path_ / "notes.txt", "not a run");
  const auto refused = RunFolder::look(path_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::invalid);
  EXPECT_EQ(names_in(path_), std::vector<std::string>{"notes.txt"});

  put(path_ / "run.toml", "");
  EXPECT_TRUE(RunFolder::look(path_).ok());
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"notes.txt", "run.toml"}));
}

TEST_F(RunFolderTest, that_may_not_be_written_is_refused_with_the_reason) {
  fs::permissions(folder_.path(), fs::perms(0555));
  // Root may write anything; nobody may not.
  Child nobody([&]() -> std::string {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return "setuid failed";
    const auto run = RunFolder::open(path_);
    return run.ok() ? "opened" : run.error().to_string();
  });
  EXPECT_EQ(nobody.said(), "system: creating folder " + path_.string() + ": Permission denied");
  fs::permissions(folder_.path(), fs::perms(0755));
}

TEST_F(RunFolderTest, that_is_a_file_is_refused_with_the_reason) {
  put(folder_ / "file", "");
  const auto run = RunFolder::open(folder_ / "file");
  ASSERT_FALSE(run.ok());
  EXPECT_EQ(run.error().kind, ErrorKind::system);
}

TEST_F(RunFolderTest, lists_checkpoints_newest_first_by_number_and_nothing_else) {
  const RunFolder run = opened(path_);
  for (const std::uint64_t step : {20ull, 3ull, 1'000'000'000ull}) write_step(run, step);
  for (const char* name : {"best.safetensors", "step-.safetensors", "step-1x.safetensors", "step-5", "other",
                           "step-000000020.safetensors.77.tmp", "step--4.safetensors"}) {
    put(checkpoints_folder() / name, "x");
  }
  EXPECT_EQ(run.checkpoints(), (std::vector<fs::path>{run.checkpoint_path(1'000'000'000),
                                                      run.checkpoint_path(20), run.checkpoint_path(3)}));
}

TEST_F(RunFolderTest, resumes_from_the_newest_checkpoint_that_is_whole) {
  const RunFolder run = opened(path_);
  for (const std::uint64_t step : {10ull, 20ull, 30ull, 40ull}) write_step(run, step);
  fs::resize_file(run.checkpoint_path(40), fs::file_size(run.checkpoint_path(40)) / 2);
  put(run.checkpoint_path(30), "");
  std::vector<std::string> skipped;
  const auto newest = run.newest(&skipped);
  ASSERT_TRUE(newest.ok()) << newest.error().to_string();
  EXPECT_EQ(newest->value().info().step, 20u);
  ASSERT_EQ(skipped.size(), 2u);
  EXPECT_NE(skipped[0].find("step-000000040"), std::string::npos) << skipped[0];
  EXPECT_NE(skipped[1].find("step-000000030"), std::string::npos) << skipped[1];
}

TEST_F(RunFolderTest, resumes_from_the_best_checkpoint_when_no_other_is_whole) {
  const RunFolder run = opened(path_);
  write_step(run, 10);
  ASSERT_TRUE(run.retain(10, true, 1).ok());
  write_step(run, 20);
  ASSERT_TRUE(run.retain(20, false, 1).ok());
  put(run.checkpoint_path(20), "broken");
  const auto newest = run.newest();
  ASSERT_TRUE(newest.ok()) << newest.error().to_string();
  EXPECT_EQ(newest->value().info().step, 10u);
}

TEST_F(RunFolderTest, does_not_begin_anew_in_silence_when_every_checkpoint_is_broken) {
  const RunFolder run = opened(path_);
  put(run.checkpoint_path(10), "broken");
  std::vector<std::string> skipped;
  const auto newest = run.newest(&skipped);
  ASSERT_FALSE(newest.ok());
  EXPECT_EQ(newest.error().kind, ErrorKind::corrupt);
  EXPECT_NE(newest.error().message.find("move them away"), std::string::npos) << newest.error().message;
  EXPECT_EQ(skipped.size(), 1u);
}

TEST_F(RunFolderTest, does_not_pass_over_a_checkpoint_of_a_newer_w5xde) {
  const RunFolder run = opened(path_);
  write_step(run, 10);
  write_step(run, 20);
  Metadata metadata = SafetensorsFile::open(run.checkpoint_path(20)).value().contents().metadata;
  metadata["w5xde_checkpoint"] = "2";
  metadata["checksum"] =
      fmt::format("{:016x}", hash64(bytes_of("2" + metadata["info"] + metadata["groups"])));
  ASSERT_TRUE(write_safetensors(run.checkpoint_path(20), {}, metadata).ok());
  const auto newest = run.newest();
  ASSERT_FALSE(newest.ok());
  EXPECT_EQ(newest.error().kind, ErrorKind::incompatible);
}

TEST_F(RunFolderTest, retains_the_best_and_the_last_few) {
  const RunFolder run = opened(path_);
  for (std::uint64_t step = 1; step <= 6; ++step) {
    write_step(run, step);
    const Status retained = run.retain(step, step == 2, 3);
    ASSERT_TRUE(retained.ok()) << retained.error().to_string();
  }
  EXPECT_EQ(names_in(checkpoints_folder()),
            (std::vector<std::string>{"best.safetensors", "step-000000004.safetensors",
                                      "step-000000005.safetensors", "step-000000006.safetensors"}));
  EXPECT_EQ(CheckpointFile::open(run.best_checkpoint()).value().info().step, 2u);

  ASSERT_TRUE(run.retain(6, true, 0).ok());  // never the newest
  EXPECT_EQ(names_in(checkpoints_folder()),
            (std::vector<std::string>{"best.safetensors", "step-000000006.safetensors"}));
  EXPECT_EQ(CheckpointFile::open(run.best_checkpoint()).value().info().step, 6u);
  ASSERT_TRUE(run.retain(6, true, 1).ok());  // already the best
  EXPECT_EQ(names_in(checkpoints_folder()).size(), 2u);
}

TEST_F(RunFolderTest, retains_whole_checkpoints_although_a_broken_one_is_numbered_higher) {
  const RunFolder run = opened(path_);
  put(run.checkpoint_path(100), "broken");
  write_step(run, 10);
  write_step(run, 20);
  ASSERT_TRUE(run.retain(20, false, 2).ok());
  EXPECT_EQ(run.checkpoints().size(), 3u);
  EXPECT_EQ(run.newest().value()->info().step, 20u);
}

TEST_F(RunFolderTest, cannot_make_a_checkpoint_the_best_that_is_not_there) {
  const RunFolder run = opened(path_);
  write_step(run, 1);
  ASSERT_TRUE(run.retain(1, true, 1).ok());
  EXPECT_EQ(run.retain(2, true, 1).error().kind, ErrorKind::invalid);
  EXPECT_EQ(CheckpointFile::open(run.best_checkpoint()).value().info().step, 1u);
}

TEST_F(RunFolderTest, is_cleared_of_what_a_killed_coordinator_left_half_written) {
  {
    const RunFolder run = opened(path_);
    write_step(run, 1);
  }
  put(checkpoints_folder() / "step-000000002.safetensors.4711.tmp", "half");
  put(checkpoints_folder() / "best.safetensors.tmp", "half");
  put(checkpoints_folder() / "mine.tmp", "not ours");
  put(path_ / "summary.json.4711.tmp", "half");
  put(path_ / "frozen.safetensors.4711.tmp", "half");
  const auto looking = RunFolder::look(path_);  // may look while the writer of these still writes
  EXPECT_TRUE(fs::exists(path_ / "summary.json.4711.tmp"));
  const RunFolder run = opened(path_);
  EXPECT_EQ(names_in(checkpoints_folder()),
            (std::vector<std::string>{"mine.tmp", "step-000000001.safetensors"}));
  EXPECT_EQ(names_in(path_), (std::vector<std::string>{"checkpoints", "lock"}));
}

}  // namespace
}  // namespace w5xde
