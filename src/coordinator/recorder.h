#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/log.h"
#include "net/loop.h"
#include "record/checkpoint.h"
#include "record/run_database.h"
#include "record/run_folder.h"

namespace w5xde {

// Writes the run folder beside the loop, so that a slow disk does not hold up the pool. Loop thread only.
class Recorder {
 public:
  // Without a database, checkpoints are all that is recorded.
  enum class Database { none, kept };
  Recorder(Loop& loop, RunFolder folder, Database database, const Log& log);
  ~Recorder();  // writes what it was given

  // Begins with the rows up to there.
  void resume(const RunDatabase::Resumption& from);

  struct Written {
    std::uint64_t step = 0;
    Status status;
  };
  // The blocks must not change until `done` is called, on the loop. `diverged`, and nothing is written, when
  // they are not finite.
  void checkpoint(const CheckpointInfo& info, std::vector<NamedBlock> blocks, bool best, unsigned keep,
                  std::function<void(Written)> done);

  // Rows are lost, and that is logged once, when the database cannot be written.
  template <class Row>
  void add(const Row& row) {
    submit([row](RunDatabase& database) { return database.add(row); });
  }
  // Steps may be short: their rows are handed over many at once.
  void add(const RunDatabase::StepRow& row) {
    steps_.push_back(row);
    if (steps_.size() >= kStepsAtOnce) submit_steps();
  }
  // What was added is on disk soon.
  void flush() {
    submit_steps();
    submit([](RunDatabase& database) { return database.flush(); });
  }

  const RunFolder& folder() const { return folder_; }

 private:
  static constexpr std::size_t kStepsAtOnce = 256;

  void submit_steps();
  void submit(std::function<Status(RunDatabase&)> task);

  Loop& loop_;
  RunFolder folder_;
  Log log_;
  std::vector<RunDatabase::StepRow> steps_;
  // The background's own.
  std::optional<RunDatabase> database_;
  bool database_failed_ = false;

  std::unique_ptr<Background> background_;  // last: it must be gone before what it works with
};

}  // namespace w5xde
