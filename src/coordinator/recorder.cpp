#include "coordinator/recorder.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/errors.h"
#include "learn/learner.h"

namespace w5xde {

Recorder::Recorder(Loop& loop, RunFolder folder, Database database, const Log& log)
    : loop_(loop), folder_(std::move(folder)), log_(log), background_(loop.background()) {
  if (database == Database::none) return;
  background_->run([this] {
    auto opened = RunDatabase::open(folder_.database());
    if (opened.ok()) {
      database_.emplace(std::move(*opened));
    } else {
      log_.error("no run database: {}; training goes on without", opened.error().message);
    }
  });
}

Recorder::~Recorder() {
  submit_steps();
}

void Recorder::submit_steps() {
  if (steps_.empty()) return;
  submit([steps = std::exchange(steps_, {})](RunDatabase& database) -> Status {
    for (const auto& step : steps) W5XDE_CHECK(database.add(step));
    return {};
  });
}

void Recorder::submit(std::function<Status(RunDatabase&)> task) {
  background_->run([this, task = std::move(task)] {
    if (!database_) return;
    const Status status = task(*database_);
    if (!status.ok() && !database_failed_) log_.error("{}; training goes on", status.error().message);
    database_failed_ = !status.ok();
  });
}

void Recorder::resume(const RunDatabase::Resumption& from) {
  submit([from](RunDatabase& database) { return database.resume(from); });
}

void Recorder::checkpoint(const CheckpointInfo& info, std::vector<NamedBlock> blocks, bool best,
                          unsigned keep, std::function<void(Written)> done) {
  submit_steps();
  const auto written = std::make_shared<Written>(Written{.step = info.step});
  const auto write = [this, info, blocks = std::move(blocks), best, keep, written] {
    const Instant begun = loop_.now();
    const auto path = folder_.checkpoint_path(info.step);
    // The last checkpoint is what a run that diverged goes on from: it must not be of what it diverged to.
    // Buffers may be infinite from the beginning, and all that changes them was checked.
    const auto is_sound = [](const NamedBlock& block) {
      return block.group == "buffers" || all_finite(block.values);
    };
    if (!std::ranges::all_of(blocks, is_sound)) {
      written->status = diverged(
          "training diverged by step {}: parameters are not finite. Lower --learning-rate or set "
          "--clip-norm, and go on from the last checkpoint",
          info.step);
      return;
    }
    written->status = write_checkpoint(path, info, blocks, folder_.disk());
    if (written->status.ok()) written->status = folder_.retain(info.step, best, keep);
    if (!written->status.ok() || !database_) return;
    std::error_code ignored;  // the size is for people
    (void)database_->add(RunDatabase::CheckpointRow{.step = info.step,
                                                    .file = path.filename().string(),
                                                    .bytes = std::filesystem::file_size(path, ignored),
                                                    .write_seconds = seconds_of(loop_.now() - begun)});
    (void)database_->flush();
  };
  background_->run(write, [written, done = std::move(done)] { done(*written); });
}

}  // namespace w5xde
