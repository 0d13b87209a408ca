#include "local_pool/progress.h"

#include <fmt/format.h>

#include <algorithm>

#include "commands/figure_text.h"
#include "record/summary.h"

namespace w5xde {

namespace {

constexpr double kPlainEverySeconds = 10;

// Of the run, up to the first of its ends in steps or epochs; 0: there is no such end.
double share_done(const StatusReport& report, const RunConfig& config) {
  if (report.steps_total > 0)
    return static_cast<double>(report.step) / static_cast<double>(report.steps_total);
  double share = 0;
  if (config.steps > 0 && !config.growth.grows()) {
    const auto batches = static_cast<double>(config.steps) * config.step_slots();
    share = static_cast<double>(report.batches) / batches;
  }
  const bool ends_nowhere = config.steps == 0 && config.epochs == 0 && config.seconds == 0;
  const double epochs = ends_nowhere ? 1 : config.epochs;
  return epochs > 0 ? std::max(share, report.epochs / epochs) : share;
}

}  // namespace

std::string progress_line(const StatusReport& report, const RunConfig& config) {
  std::string line = fmt::format("step {}", report.step);
  if (report.steps_total > 0) line += fmt::format("/{}", report.steps_total);
  line += fmt::format("  epoch {:.2f}  loss {}  {:.0f} batches/s  {} node{}", report.epochs,
                      decimal_text(report.loss.value_or(kUnknown), 4), report.batches_per_second,
                      report.nodes.size(), report.nodes.size() == 1 ? "" : "s");
  double left = -1;
  if (const double done = share_done(report, config); done > 0 && report.seconds > 0)
    left = std::max(report.seconds * (1 - done) / done, 0.0);
  if (config.seconds > 0 && (left < 0 || config.seconds - report.seconds < left))
    left = config.seconds - report.seconds;
  if (left >= 0) line += "  ETA " + clock_text(left);
  return line;
}

Progress::Progress(const Log& log, const RunConfig& config) : log_(log), config_(config), line_(&log) {}

void Progress::show(const StatusReport& report) {
  if (log_.tier() == LogTier::silent) return;
  if (!line_.on_terminal() && report.seconds < next_plain_) return;
  line_.show(progress_line(report, config_));
  next_plain_ = report.seconds + kPlainEverySeconds;
}

}  // namespace w5xde
