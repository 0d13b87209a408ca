#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "w5xde/result.h"

namespace w5xde {

using Words = std::vector<std::string>;

// A program that this one started, in a process group of its own: a terminal's Ctrl-C is for this program
// alone, which tells its children.
class Child {
 public:
  // What it writes goes to the end of `output`.
  static Result<Child> start(const Words& command, const std::filesystem::path& output = "/dev/null");
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  // What still runs is killed, with all that it started.
  ~Child();

  // Readable once it has ended.
  int descriptor() const { return exit_watch_; }
  void signal(int number) const;
  // What it exited with, 128 + N when signal N ended it; none while it runs.
  std::optional<int> exit_code();
  // What was started, and the last two lines that it wrote.
  std::string last_words() const;

 private:
  Child(std::string name, std::filesystem::path output, pid_t id, int exit_watch)
      : name_(std::move(name)), output_(std::move(output)), id_(id), exit_watch_(exit_watch) {}

  std::string name_;
  std::filesystem::path output_;
  pid_t id_ = -1;
  int exit_watch_ = -1;
  std::optional<int> exit_code_;
};

// Who else has a say while children are waited for.
struct Watch {
  int interrupt = -1;  // once it can be read from, the children are told to stop
  std::function<void()> every_second = [] {};
};

// Waits until all have ended well. When one has not, or when interrupted, the others are told to stop and
// waited for; then that is the error.
Status wait_for(std::span<Child> children, const Watch& watch);

// This program, to be started once more.
Result<std::string> own_program();

}  // namespace w5xde
