#pragma once

#include <unistd.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "base/tell_progress.h"

namespace w5xde {

// On a terminal one line, whose place the next one takes; elsewhere a line of the log each, or of stderr
// where there is no log. Nothing where the log is silent.
class ProgressLine {
 public:
  explicit ProgressLine(const Log* log, int screen = STDERR_FILENO);
  ~ProgressLine() { end(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool on_terminal() const { return terminal_; }
  void show(const std::string& line);
  // Takes the open line away.
  void end();

 private:
  std::optional<Log> log_;
  int screen_;
  bool terminal_;
  bool open_ = false;
};

// Shows how far long work is, once it has taken a second: several times a second on a terminal, every ten
// seconds elsewhere. From one thread at a time.
class WorkProgress {
 public:
  // `what` is done: "reading houses.csv".
  WorkProgress(const Log* log, const Clock& clock, std::string what, int screen = STDERR_FILENO);

  void tell(std::uint64_t done, std::uint64_t all);
  // For work that tells it; only while this lives.
  TellProgress teller() {
    return [this](std::uint64_t done, std::uint64_t all) { tell(done, all); };
  }

 private:
  const Clock& clock_;
  std::string what_;
  ProgressLine line_;
  Instant due_;
};

// "412 MB"
std::string megabytes_text(std::uint64_t bytes);

}  // namespace w5xde
