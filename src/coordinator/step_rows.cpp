#include "coordinator/step_rows.h"

#include <algorithm>

namespace w5xde {

namespace {

constexpr auto kRateEvery = std::chrono::milliseconds(100);

}  // namespace

void StepRows::committed(double loss, std::uint64_t samples, std::uint32_t slots, Instant now) {
  ++steps_;
  ++row_.steps;
  row_.samples += samples;
  row_loss_ += loss;
  row_batches_ += slots;
  rate_batches_ += slots;
  const Duration window = now - rate_since_;
  if (window < kRateEvery) return;
  const double recent = static_cast<double>(rate_batches_) / seconds_of(window);
  batches_per_second_ = batches_per_second_ == 0 ? recent : 0.8 * batches_per_second_ + 0.2 * recent;
  rate_batches_ = 0;
  rate_since_ = now;
}

std::optional<RunDatabase::StepRow> StepRows::take(Instant now) {
  if (row_.steps == 0) return std::nullopt;
  RunDatabase::StepRow row = row_;
  row.loss = row_loss_ / static_cast<double>(row.steps);
  row.batches_per_second = static_cast<double>(row_batches_) / std::max(seconds_of(now - row_since_), 1e-9);
  row_ = {.steps = 0};
  row_loss_ = 0;
  row_batches_ = 0;
  row_since_ = now;
  return row;
}

}  // namespace w5xde
