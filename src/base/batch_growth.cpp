#include "base/batch_growth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/printable.h"

namespace w5xde {

std::string noise_scale_text(double noise_scale) {
  if (!std::isfinite(noise_scale)) return "noise scale beyond measure";
  return "noise scale " + grouped(static_cast<std::uint64_t>(std::llround(std::max(0.0, noise_scale))));
}

std::string to_text(const BatchGrowth& growth) {
  return fmt::format("step {}: {} → {} samples, {}, learning rate {:.4g} → {:.4g}", growth.step,
                     grouped(growth.samples_before), grouped(growth.samples),
                     noise_scale_text(growth.noise_scale), growth.learning_rate_before, growth.learning_rate);
}

}  // namespace w5xde
