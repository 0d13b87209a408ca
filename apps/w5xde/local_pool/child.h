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

// A command line, or a part of one.
using Words = std::vector<std::string>;
inline Words operator+(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// A program that this one started, in a process group of its own: a terminal's Ctrl-C reaches this program
// only, and this program stops its children.
class Child {
 public:
  // Its output is appended to `output`.
  static Result<Child> start(const Words& command, const std::filesystem::path& output = "/dev/null");
  Child(Child&& other) noexcept;
  Child& operator=(Child&&) = delete;
  // Kills it if it still runs, with all that it started.
  ~Child();

  // Readable once it has ended.
  int descriptor() const { return exit_watch_; }
  void signal(int number) const;
  // Its exit code; 128 + N when signal N ended it; none while it runs.
  std::optional<int> exit_code();
  // Its command line, and the last two lines that it wrote.
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

// What else happens while children are waited for.
struct Watch {
  int interrupt = -1;  // a descriptor; once it is readable, the children are stopped
  std::function<void()> every_second = [] {};
};

// Waits until all have ended with 0. When one has not, or when interrupted, the others are stopped and waited
// for, and that is the error.
Status wait_for(std::span<Child> children, const Watch& watch);

// The path of this program.
Result<std::string> own_program();

}  // namespace w5xde
