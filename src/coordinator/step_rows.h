#pragma once

#include <cstdint>
#include <optional>

#include "base/clock.h"
#include "record/run_database.h"

namespace w5xde {

// Steps become rows of the database, one a step in a short run, fewer as it grows long; and the pool's speed
// of the moment.
class StepRows {
 public:
  // Goes on after this many steps.
  void resume(std::uint64_t steps) { steps_ = steps; }
  void begin(Instant now) { row_since_ = rate_since_ = now; }

  void committed(double loss, std::uint64_t samples, std::uint32_t slots, Instant now);
  bool due() const { return row_.steps >= RunDatabase::steps_of_row(steps_); }
  // Of the steps since the last row, with the batches a second; none without a step. The caller adds what
  // else holds at its end.
  std::optional<RunDatabase::StepRow> take(Instant now);

  // Smoothed over about a second.
  double batches_per_second() const { return batches_per_second_; }

 private:
  std::uint64_t steps_ = 0;
  RunDatabase::StepRow row_{.steps = 0};
  double row_loss_ = 0;
  std::uint64_t row_batches_ = 0;
  Instant row_since_;
  // Since the rate was last computed.
  std::uint64_t rate_batches_ = 0;
  Instant rate_since_;
  double batches_per_second_ = 0;
};

}  // namespace w5xde
