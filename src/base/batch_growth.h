// How a run's global batch has grown: in checkpoints, because the next growth depends on it, and the summary.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace w5xde {

struct BatchGrowth {
  std::uint64_t step = 0;            // the first of this size
  std::uint64_t samples_before = 0;  // a step
  std::uint64_t samples = 0;
  double noise_scale = 0;           // samples, when it was decided; NaN: beyond measure
  double learning_rate_before = 0;  // the schedule's base
  double learning_rate = 0;

  bool operator==(const BatchGrowth&) const = default;
};

// All that the next growth depends on (learn/noise_scale.h).
struct BatchGrowthState {
  std::uint64_t steps = 0;  // that were measured
  double noise = 0;
  double signal = 0;
  std::vector<BatchGrowth> growths;

  bool operator==(const BatchGrowthState&) const = default;
};

// "noise scale 5,210"
std::string noise_scale_text(double noise_scale);
// "step 120: 1,024 → 2,048 samples, noise scale 5,210, learning rate 0.1 → 0.2"
std::string to_text(const BatchGrowth& growth);

}  // namespace w5xde
