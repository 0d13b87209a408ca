#include "base/work_progress.h"

#include <fmt/format.h>

#include <algorithm>

namespace w5xde {

namespace {

// Most work is done before anybody would ask how far it is.
constexpr Duration kQuiet = std::chrono::seconds(1);
constexpr Duration kOnTerminalEvery = std::chrono::milliseconds(200);
constexpr Duration kPlainEvery = std::chrono::seconds(10);

void write_text(int screen, const std::string& text) {
  // A screen that takes nothing is not waited for.
  (void)!::write(screen, text.data(), text.size());
}

}  // namespace

ProgressLine::ProgressLine(const Log* log, int screen) : screen_(screen), terminal_(isatty(screen) != 0) {
  if (log != nullptr) log_ = *log;
}

void ProgressLine::show(const std::string& line) {
  if (log_ && log_->tier() == LogTier::silent) return;
  if (terminal_) {
    write_text(screen_, "\r\x1b[K" + line);
    open_ = true;
  } else if (log_) {
    log_->normal("{}", line);
  } else {
    write_text(screen_, fmt::format("w5xde: {}\n", line));
  }
}

void ProgressLine::end() {
  if (open_) write_text(screen_, "\r\x1b[K");
  open_ = false;
}

WorkProgress::WorkProgress(const Log* log, const Clock& clock, std::string what, int screen)
    : clock_(clock), what_(std::move(what)), line_(log, screen), due_(clock.now() + kQuiet) {}

void WorkProgress::tell(std::uint64_t done, std::uint64_t all) {
  const Instant now = clock_.now();
  if (now < due_ || all == 0) return;
  due_ = now + (line_.on_terminal() ? kOnTerminalEvery : kPlainEvery);
  const double share = static_cast<double>(std::min(done, all)) / static_cast<double>(all);
  line_.show(fmt::format("{}: {:.0f} %", what_, 100 * share));
}

std::string megabytes_text(std::uint64_t bytes) {
  return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace w5xde
