#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace w5xde {

// A program that a test started, with a process group of its own. What it writes to stderr is read from a
// pipe; stdout goes nowhere. Waiting ends with an exception that has all of stderr when it takes longer than
// any machine should. When this goes, so does everything that the program started and left.
class Process {
 public:
  struct Options {
    std::filesystem::path folder = ".";              // to start in
    std::map<std::string, std::string> environment;  // beside the test's own
    std::optional<rlim_t> file_bytes_max;            // no file may grow past it, as on a full disk
    std::optional<rlim_t> descriptors_max;           // as after ulimit -n
    bool with_output = false;                        // stdout is read too, as if it were stderr
  };

  Process(const std::vector<std::string>& command, const Options& options);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  pid_t id() const { return id_; }
  // To the program and all it started, as a terminal's Ctrl-C or a machine's end would.
  void signal(int number);
  void signal_alone(int number);

  // The first line that has `part` in it, of those that no earlier call gave.
  std::string wait_for_line(const std::string& part);
  // What it exited with; 128 + N when signal N ended it.
  int wait();
  // Everything it said so far.
  const std::string& said() const { return said_; }

  // Its descendants, the nearest first.
  std::vector<pid_t> descendants() const;

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  void wait_for_more(Deadline deadline, const std::string& what);
  bool read_some();
  [[noreturn]] void give_up(const std::string& what) const;

  std::string name_;
  pid_t id_ = -1;
  int exit_watch_ = -1;  // readable once it has ended
  int output_ = -1;
  std::optional<int> exit_code_;
  std::string said_;
  std::size_t looked_at_ = 0;  // of what it said, by wait_for_line
};

}  // namespace w5xde
