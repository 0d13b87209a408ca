#include "coordinator/recorder.h"

#include <filesystem>

namespace w5xde {

Recorder::Recorder(Loop& loop, RunFolder folder, const Log& log)
    : loop_(loop), folder_(std::move(folder)), log_(log) {
  thread_.submit([this] {
    auto opened = RunDatabase::open(folder_.database());
    if (opened.ok()) {
      database_.emplace(std::move(*opened));
    } else {
      log_.error("no run database: {}; training goes on without", opened.error().message);
    }
  });
}

Recorder::~Recorder() = default;

void Recorder::submit(std::function<Status(RunDatabase&)> task) {
  thread_.submit([this, task = std::move(task)] {
    if (!database_) return;
    const Status status = task(*database_);
    if (!status.ok() && !database_failed_) log_.error("{}; training goes on", status.error().message);
    database_failed_ = !status.ok();
  });
}

void Recorder::resume(std::uint64_t step) {
  submit([step](RunDatabase& database) { return database.forget_after(step); });
}

void Recorder::checkpoint(const CheckpointInfo& info, std::vector<CheckpointBlock> blocks, bool best,
                          unsigned keep, std::function<void(Written)> done) {
  thread_.submit([this, info, blocks = std::move(blocks), best, keep, done = std::move(done)] {
    const Instant begun = SteadyClock().now();
    const auto path = folder_.checkpoint_path(info.step);
    Status status = write_checkpoint(path, info, blocks);
    if (status.ok()) status = folder_.retain(info.step, best, keep);
    if (status.ok() && database_) {
      std::error_code ignored;  // the size is for people
      (void)database_->add(
          RunDatabase::CheckpointRow{.step = info.step,
                                     .file = path.filename().string(),
                                     .bytes = std::filesystem::file_size(path, ignored),
                                     .write_seconds = seconds_of(SteadyClock().now() - begun)});
      (void)database_->flush();
    }
    loop_.post([step = info.step, status, done] { done({step, status}); });
  });
}

}  // namespace w5xde
