#include "coordinator/checkpoints.h"

#include <fmt/format.h>

namespace w5xde {

void Checkpoints::write(Saving saving, const Done& done) {
  save(std::make_shared<Saving>(std::move(saving)), 0, done);
}

// A full disk or a lack of descriptors may pass: it is tried again before the run is given up. Meanwhile
// nodes compute, and commits wait.
void Checkpoints::save(const std::shared_ptr<const Saving>& saving, unsigned failures, const Done& done) {
  state_ = failures > 0 ? State::refused : State::writing;
  const auto written = [this, saving, failures, done](const Recorder::Written& result) {
    const Status& status = result.status;
    if (!status.ok() && status.error().kind == ErrorKind::diverged) return done(status);
    if (!status.ok() && failures + 1 < tries_max_) {
      state_ = State::refused;
      const Duration delay = options_.retry * (1U << failures);
      tally_.event(fmt::format("checkpoint of step {} failed: {}; trying again in {:.0f} s", result.step,
                               status.error().message, seconds_of(delay)));
      retry_timer_ = loop_.after(delay, [this, saving, failures, done] { save(saving, failures + 1, done); });
      return;
    }
    state_ = State::idle;
    set_due();
    saved_version_ = saving->info.version;
    if (!status.ok()) {
      constexpr auto kAdvice = "writing a checkpoint; free some space and start the run again";
      return done(Error(status.error()).within(kAdvice));
    }
    tally_.event(fmt::format("checkpoint of step {}", result.step));
    done(status);
  };
  recorder_.checkpoint(saving->info, saving->blocks, saving->best, options_.keep, written);
}

}  // namespace w5xde
