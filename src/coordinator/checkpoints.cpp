#include "coordinator/checkpoints.h"

#include <fmt/format.h>

#include <set>

namespace w5xde {

namespace {

// What a node has to send its error feedback, beside what its link takes for it.
constexpr double kFeedbackSeconds = 5;
constexpr double kSlowestBytesPerSecond = 125e3;  // where the link is not measured

}  // namespace

Status Checkpoints::resume(const CheckpointFile& from, std::shared_ptr<const BlockLayout> layout) {
  saved_version_ = from.info().version;
  feedback_bytes_max_ = 2 * layout->floats() * sizeof(float);
  feedback_.emplace(std::move(layout));
  return feedback_->restore(from);
}

// Nodes that have rested since are not asked again: feedback is as large as the model.
void Checkpoints::gather(const std::vector<NodeId>& nodes, const std::function<bool(NodeId)>& ask) {
  std::set<NodeId> asked;
  for (const NodeId node : nodes) {
    if (!feedback_->has_copy(node) && (feedback_->awaits(node) || ask(node))) asked.insert(node);
  }
  feedback_->gather(asked, loop_.now());
}

std::optional<double> Checkpoints::waited_too_long(NodeId node, double bytes_per_second) const {
  const auto asked = feedback_->awaited().find(node);
  if (asked == feedback_->awaited().end()) return std::nullopt;
  const double rate = bytes_per_second > 0 ? bytes_per_second : kSlowestBytesPerSecond;
  const double patience = kFeedbackSeconds + 4 * static_cast<double>(feedback_bytes_max_) / rate;
  if (seconds_of(loop_.now() - asked->second) <= patience) return std::nullopt;
  return patience;
}

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
