#include "base/log.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

class LogFile : public testing::Test {
 protected:
  Log open(LogTier tier) const { return Log::to_file(tier, path()).value(); }
  std::string path() const { return folder_ / "log"; }

  // Without the time at the front, which is checked to be one.
  std::vector<std::string> lines() const {
    std::ifstream file(path());
    std::vector<std::string> found;
    for (std::string line; std::getline(file, line);) {
      static const std::regex kTime(R"(^\d\d:\d\d:\d\d\.\d\d\d )");
      EXPECT_TRUE(std::regex_search(line, kTime)) << line;
      found.push_back(std::regex_replace(line, kTime, ""));
    }
    return found;
  }

  TemporaryFolder folder_;
};

using Lines = std::vector<std::string>;

void log_one_of_each(const Log& log) {
  log.error("disk {} is full", 1);
  log.normal("step {} of {}", 2, 3);
  log.verbose("frame {:x}", 255);
}

TEST_F(LogFile, of_the_silent_tier_has_errors_only) {
  log_one_of_each(open(LogTier::silent));
  EXPECT_EQ(lines(), Lines{"error: disk 1 is full"});
}

TEST_F(LogFile, of_the_normal_tier_leaves_out_the_verbose_lines) {
  log_one_of_each(open(LogTier::normal));
  EXPECT_EQ(lines(), (Lines{"error: disk 1 is full", "step 2 of 3"}));
}

TEST_F(LogFile, of_the_verbose_tier_has_everything) {
  log_one_of_each(open(LogTier::verbose));
  EXPECT_EQ(lines(), (Lines{"error: disk 1 is full", "step 2 of 3", "frame ff"}));
}

TEST_F(LogFile, takes_a_peer_s_text_as_text) {
  open(LogTier::normal).normal("{}", "100% {} {0} %v");
  EXPECT_EQ(lines(), Lines{"100% {} {0} %v"});
}

// What the log writes to stderr when that is this descriptor.
void log_to(int descriptor) {
  const int before = ::dup(STDERR_FILENO);
  ::dup2(descriptor, STDERR_FILENO);
  { Log(LogTier::normal).normal("a line"); }
  ::dup2(before, STDERR_FILENO);
  ::close(before);
}

std::string read_from(int descriptor) {
  std::array<char, 200> text{};
  const ssize_t size = ::read(descriptor, text.data(), text.size());
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

TEST(LogTest, a_line_takes_the_place_of_an_open_one_on_a_terminal_and_has_no_such_marks_in_a_pipe) {
  int screen = -1, terminal = -1;
  ASSERT_EQ(::openpty(&screen, &terminal, nullptr, nullptr, nullptr), 0);
  log_to(terminal);
  const std::string shown = read_from(screen);
  EXPECT_TRUE(shown.starts_with("\r\x1b[K")) << shown;
  EXPECT_TRUE(shown.ends_with(" a line\r\n")) << shown;
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  log_to(pipe[1]);
  EXPECT_EQ(read_from(pipe[0]).find('\r'), std::string::npos);
  for (const int open : {screen, terminal, pipe[0], pipe[1]}) ::close(open);
}

TEST_F(LogFile, is_appended_to) {
  open(LogTier::normal).normal("first run");
  open(LogTier::normal).normal("second run");
  EXPECT_EQ(lines(), (Lines{"first run", "second run"}));
}

TEST_F(LogFile, has_each_line_soon_and_not_only_at_the_end) {
  const Log log = open(LogTier::normal);
  log.normal("still alive");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (lines().empty() && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(lines(), Lines{"still alive"});
}

TEST_F(LogFile, has_the_lines_of_all_copies_and_threads_once_the_last_copy_is_gone) {
  {
    const Log log = open(LogTier::normal);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([copy = log, t] {
        for (int i = 0; i < 100; ++i) copy.normal("thread {} line {}", t, i);
      });
    }
    for (auto& thread : threads) thread.join();
  }
  const auto found = lines();
  EXPECT_EQ(found.size(), 400u);
  for (int t = 0; t < 4; ++t) {
    Lines mine;
    for (const auto& line : found) {
      if (line.starts_with(fmt::format("thread {} ", t))) mine.push_back(line);
    }
    ASSERT_EQ(mine.size(), 100u);
    for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(mine[i], fmt::format("thread {} line {}", t, i));
  }
}

TEST_F(LogFile, that_cannot_be_opened_is_an_error_with_path_and_reason) {
  std::ofstream(folder_ / "plain") << "a file where a folder should be";
  const std::string inside = folder_ / "plain" / "log";
  const auto log = Log::to_file(LogTier::normal, inside);
  ASSERT_FALSE(log.ok());
  EXPECT_EQ(log.error().kind, ErrorKind::system);
  EXPECT_NE(log.error().message.find(inside), std::string::npos) << log.error().message;
  EXPECT_NE(log.error().message.find("Not a directory"), std::string::npos) << log.error().message;
}

TEST(Log, writes_to_standard_error_by_default) {
  testing::internal::CaptureStderr();
  {
    const Log log(LogTier::normal);
    EXPECT_EQ(log.tier(), LogTier::normal);
    log.normal("hello");
    log.verbose("not this");
  }
  const std::string written = testing::internal::GetCapturedStderr();
  EXPECT_NE(written.find(" hello\n"), std::string::npos) << written;
  EXPECT_EQ(written.find("not this"), std::string::npos) << written;
}

TEST(LogTier, is_parsed_from_its_name) {
  EXPECT_EQ(parse_log_tier("silent").value(), LogTier::silent);
  EXPECT_EQ(parse_log_tier("normal").value(), LogTier::normal);
  EXPECT_EQ(parse_log_tier("verbose").value(), LogTier::verbose);
}

TEST(LogTier, that_does_not_exist_is_an_error_that_lists_those_that_do) {
  for (const std::string_view name : {"loud", "", "Verbose", "normal "}) {
    const auto tier = parse_log_tier(name);
    ASSERT_FALSE(tier.ok()) << name;
    EXPECT_EQ(tier.error().kind, ErrorKind::invalid);
    EXPECT_EQ(tier.error().message, fmt::format("log tier '{}' is none of silent, normal, verbose", name));
  }
}

}  // namespace
}  // namespace w5xde
