#include "local_pool/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "commands/figure_text.h"
#include "record/summary.h"

namespace w5xde {

namespace {

constexpr double kPlainEverySeconds = 10;

}  // namespace

std::string progress_line(const StatusReport& report, double seconds_limit) {
  std::string line = fmt::format("step {}", report.step);
  if (report.steps_total > 0) line += fmt::format("/{}", report.steps_total);
  line += fmt::format("  epoch {:.2f}  loss {}  {:.0f} batches/s  {} node{}", report.epochs,
                      decimal_text(report.loss.value_or(kUnknown), 4), report.batches_per_second,
                      report.nodes.size(), report.nodes.size() == 1 ? "" : "s");
  double left = -1;
  if (report.steps_total > 0 && report.step > 0 && report.seconds > 0) {
    left = report.seconds * static_cast<double>(report.steps_total - report.step) /
           static_cast<double>(report.step);
  }
  if (seconds_limit > 0 && (left < 0 || seconds_limit - report.seconds < left))
    left = seconds_limit - report.seconds;
  if (left >= 0) line += "  ETA " + clock_text(left);
  return line;
}

Progress::Progress(const Log& log, const RunConfig& config)
    : log_(log), config_(config), terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(const StatusReport& report) {
  if (log_.tier() == LogTier::silent) return;
  const std::string line = progress_line(report, config_.seconds);
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", line);
    std::fflush(stderr);
    line_open_ = true;
  } else if (report.seconds >= next_plain_) {
    log_.normal("{}", line);
    next_plain_ = report.seconds + kPlainEverySeconds;
  }
}

void Progress::end() {
  if (line_open_) fmt::print(stderr, "\r\x1b[K");
  line_open_ = false;
}

}  // namespace w5xde
