#include "learn/global_batch.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace w5xde {

namespace {

// When a step commits, the next one may be leased already, and the samples of the one after put together:
// neither may change its size, whether in this run they are or not.
constexpr std::uint64_t kStepsAhead = 3;
constexpr std::uint64_t kTimesTheFirst = 64;

}  // namespace

Status GrowthOptions::check() const {
  if (every == 0) return invalid("--global-batch-every begins at 1");
  return {};
}

GlobalBatch::GlobalBatch(const Options& options, const BatchGrowthState& state)
    : options_(options),
      noise_(options.growth.every, {.steps = state.steps, .noise = state.noise, .signal = state.signal}),
      growths_(state.growths) {
  if (options_.growth.samples_max == 0)
    options_.growth.samples_max = kTimesTheFirst * options_.slots * options_.batch;
}

std::optional<BatchGrowth> GlobalBatch::committed(std::uint64_t step) {
  if (measured_) noise_ = *std::exchange(measured_, std::nullopt);
  const std::uint64_t samples =
      growths_.empty() ? std::uint64_t{options_.slots} * options_.batch : growths_.back().samples;
  const std::uint64_t since = growths_.empty() ? 0 : growths_.back().step;
  const std::uint64_t every = options_.growth.every;
  if (step + 1 < since + every || noise_.means().steps < every) return std::nullopt;
  if (2 * samples > std::min(options_.growth.samples_max, kStepSlotsMax * options_.batch))
    return std::nullopt;
  if (!noise_.at_least(2 * static_cast<double>(samples))) return std::nullopt;
  BatchGrowth growth{.step = step + kStepsAhead,
                     .samples_before = samples,
                     .samples = 2 * samples,
                     .noise_scale = noise_.value()};
  const double rate = options_.optimizer.learning_rate;
  growth.learning_rate_before = rate * rate_factor(slots_of({.samples = samples}));
  growth.learning_rate = rate * rate_factor(slots_of(growth));
  growths_.push_back(growth);
  return growth;
}

// A step of twice the samples stands for two. sgd takes them at twice the rate; adam divides by the root of
// the squares, which noise has its part in, and so by its root.
double GlobalBatch::rate_factor(std::uint32_t slots) const {
  const RateScaling scaling = options_.growth.scaling;
  const double times = static_cast<double>(slots) / options_.slots;
  if (scaling == RateScaling::none) return 1;
  const bool linear = scaling == RateScaling::by_optimizer
                          ? options_.optimizer.kind == OptimizerOptions::Kind::sgd
                          : scaling == RateScaling::linear;
  return linear ? times : std::sqrt(times);
}

BatchGrowthState GlobalBatch::state() const {
  const NoiseScale::Means& means = noise_.means();
  return {.steps = means.steps, .noise = means.noise, .signal = means.signal, .growths = growths_};
}

}  // namespace w5xde
