#pragma once

#include <string>

#include "base/log.h"
#include "base/work_progress.h"
#include "run/run_config.h"
#include "wire/status.h"

namespace w5xde {

// How training goes: one line that is rewritten on a terminal, a line every 10 s in a pipe, nothing when
// silent.
class Progress {
 public:
  Progress(const Log& log, const RunConfig& config);
  void show(const StatusReport& report);
  void end() { line_.end(); }

 private:
  const Log& log_;
  RunConfig config_;
  ProgressLine line_;
  double next_plain_ = 0;
};

// "step 120/1000  loss 0.4312  5120 batches/s  10 nodes  ETA 0:42"
// The time left is a guess from the speed so far; none where the run has no end that is known.
std::string progress_line(const StatusReport& report, const RunConfig& config);

}  // namespace w5xde
