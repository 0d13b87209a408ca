#include "base/work_progress.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <vector>

#include "support/temporary_folder.h"

namespace w5xde {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class HandClock final : public Clock {
 public:
  Instant now() const override { return now_; }
  void pass(Duration time) { now_ += time; }

 private:
  Instant now_{};
};

class WorkProgressTest : public testing::Test {
 protected:
  WorkProgressTest() { EXPECT_EQ(::openpty(&screen_, &terminal_, nullptr, nullptr, nullptr), 0); }
  ~WorkProgressTest() override {
    ::close(screen_);
    ::close(terminal_);
  }

  // Whole lines of a log file, without their times.
  std::vector<std::string> lines() const {
    std::ifstream in(folder_ / "log");
    std::vector<std::string> read;
    for (std::string line; std::getline(in, line);) read.push_back(line.substr(line.find(' ') + 1));
    return read;
  }
  // What a terminal was sent until now, up to a mark: the kernel may hand it over in pieces.
  std::string shown() const {
    constexpr char kMark = '|';
    if (::write(terminal_, &kMark, 1) != 1) return "the terminal took no mark";
    std::string text;
    for (char next = 0; next != kMark; text += next) {
      if (::read(screen_, &next, 1) != 1) return text + " and then the end";
    }
    return text;
  }
  // Tells each of 100 parts, `each` after the one before.
  void work(WorkProgress& progress, Duration each) {
    for (std::uint64_t done = 0; done < 100; ++done, clock_.pass(each)) progress.tell(done, 100);
  }

  TemporaryFolder folder_;
  HandClock clock_;
  int screen_ = -1, terminal_ = -1;
};

TEST_F(WorkProgressTest, in_a_pipe_there_is_a_line_now_and_then) {
  {
    const Log log = Log::to_file(LogTier::normal, folder_ / "log").value();
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    WorkProgress progress(&log, clock_, "reading houses.csv", ends[1]);
    work(progress, milliseconds(250));
    ::close(ends[0]);
    ::close(ends[1]);
  }
  EXPECT_EQ(lines(), (std::vector<std::string>{"reading houses.csv: 4 %", "reading houses.csv: 44 %",
                                               "reading houses.csv: 84 %"}));
}

TEST_F(WorkProgressTest, what_is_done_within_a_second_is_not_spoken_of) {
  {
    const Log log = Log::to_file(LogTier::normal, folder_ / "log").value();
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    WorkProgress plain(&log, clock_, "reading", ends[1]);
    work(plain, milliseconds(9));
    ::close(ends[0]);
    ::close(ends[1]);
  }
  EXPECT_EQ(lines().size(), 0u);
  {
    WorkProgress progress(nullptr, clock_, "reading", terminal_);
    work(progress, milliseconds(9));
  }
  EXPECT_EQ(shown(), "|");
}

TEST_F(WorkProgressTest, on_a_terminal_one_line_is_replaced_and_taken_away_in_the_end) {
  {
    WorkProgress progress(nullptr, clock_, "reading", terminal_);
    progress.tell(0, 4);
    clock_.pass(seconds(1));
    progress.tell(1, 4);
    progress.tell(2, 4);  // too soon after the one before
    clock_.pass(milliseconds(200));
    progress.tell(3, 4);
    EXPECT_EQ(shown(), "\r\x1b[Kreading: 25 %\r\x1b[Kreading: 75 %|");
  }
  EXPECT_EQ(shown(), "\r\x1b[K|");
}

TEST_F(WorkProgressTest, a_silent_log_silences_it) {
  {
    const Log log = Log::to_file(LogTier::silent, folder_ / "log").value();
    WorkProgress progress(&log, clock_, "reading", terminal_);
    work(progress, seconds(1));
  }
  EXPECT_EQ(shown(), "|");
  EXPECT_EQ(lines().size(), 0u);
}

TEST_F(WorkProgressTest, without_a_log_plain_lines_go_to_the_screen) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  WorkProgress progress(nullptr, clock_, "reading", ends[1]);
  clock_.pass(seconds(1));
  progress.tell(1, 3);
  std::array<char, 100> text{};
  const ssize_t size = ::read(ends[0], text.data(), text.size());
  EXPECT_EQ(std::string(text.data(), static_cast<std::size_t>(size)), "w5xde: reading: 33 %\n");
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace w5xde
