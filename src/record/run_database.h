// run.db: what happened in a run, for people, plots and `inspect` (docs/run_folder.md). Training does not
// need it: a caller that gets an error logs it and goes on. Used by one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "w5xde/result.h"

namespace w5xde {

class Sqlite;

class RunDatabase {
 public:
  // `step` counts the committed steps, in an async run the updates; `seconds` count from training's start. A
  // double that is not known is NaN.
  struct StepRow {  // `steps` steps that end with `step`: their mean loss, and what held at their end
    std::uint64_t step = 0;
    std::uint64_t steps = 1;
    double loss = 0;
    double learning_rate = 0;
    std::uint64_t samples = 0;
    double batches_per_second = 0;
    std::uint64_t nodes = 0;
    double seconds = 0;
  };
  // What lies between two rows of steps.
  struct Stretch {
    std::uint64_t steps = 0;
    double seconds = 0;
  };
  struct EvaluationRow {
    std::uint64_t step = 0;
    double loss = 0;
    double accuracy = 0;
    std::uint64_t samples = 0;
  };
  // Why a node left that was in when its coordinator was killed: what it had computed was not recorded.
  static constexpr const char* kCutOff = "the coordinator was killed";
  // One stay of a node, added when it joins and replaced when it leaves (same name, peer, joined_seconds).
  struct NodeRow {
    std::string name;
    std::string peer;
    std::string engine;
    double joined_seconds = 0;
    double left_seconds = std::numeric_limits<double>::quiet_NaN();  // NaN: has not left
    std::string reason;
    std::uint64_t batches = 0;
  };
  struct EventRow {
    double seconds = 0;
    std::string text;
  };
  struct CheckpointRow {
    std::uint64_t step = 0;  // CheckpointInfo::step
    std::string file;
    std::uint64_t bytes = 0;
    double write_seconds = 0;
  };

  // With this many rows of steps, each two neighbours become one.
  static constexpr std::uint64_t kStepRowsMax = 2000;
  // Of how many steps the row should be that `step` is in: a power of two, so that a long run has rows of
  // equal size, kStepRowsMax / 2 at least.
  static std::uint64_t steps_of_row(std::uint64_t step);

  // Creates the file and its tables if need be. incompatible when a newer w5xde made it.
  static Result<RunDatabase> open(const std::filesystem::path& path);
  // For reading only, also while the run's coordinator writes; add() and the like are refused.
  static Result<RunDatabase> look(const std::filesystem::path& path);

  // Begins a transaction if none is open; the row is safe once flush() returned. Replaces a row of the same
  // key. Of nodes and of events the last Limits::database_rows_max are kept; of steps all, merged.
  Status add(const StepRow& row);
  Status add(const EvaluationRow& row);
  Status add(const NodeRow& row);
  Status add(const EventRow& row);
  Status add(const CheckpointRow& row);

  // Where a resumed run goes on.
  struct Resumption {
    std::uint64_t step = 0;             // as rows count them
    std::uint64_t checkpoint_step = 0;  // as checkpoints do: those of an async run count differently
    double seconds = 0;
  };
  // Deletes rows past the checkpoint, but no nodes and events. Nodes that had not left, left at `from`.
  Status resume(const Resumption& from);

  // Commits the open transaction. When that fails its rows are dropped, and the next add() begins anew.
  Status flush();

  // Oldest first; empty when they cannot be read.
  std::vector<StepRow> steps(std::size_t rows_max) const;  // thinned evenly; keeps the first and the last
  // From the last row within the first `seconds`, or else the first one, to the last; none without two rows.
  std::optional<Stretch> stretch_after(double seconds) const;
  // The mean over all steps; 0 where there is none.
  double batches_per_second() const;
  std::vector<EvaluationRow> evaluations() const;
  std::vector<NodeRow> nodes() const;
  std::vector<EventRow> events(std::size_t rows_max) const;  // the last ones
  std::vector<CheckpointRow> checkpoints() const;

 private:
  explicit RunDatabase(std::shared_ptr<Sqlite> database) : database_(std::move(database)) {}
  Status count_step_rows();
  Status merge_step_rows();

  std::shared_ptr<Sqlite> database_;  // commits what is open when the last copy goes, if it can
  std::uint64_t step_rows_ = 0;       // of a database that is open for writing
};

}  // namespace w5xde
