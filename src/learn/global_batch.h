// When the global batch grows: twice as many slots a step, once the gradients' noise scale
// (learn/noise_scale.h) is at least twice the batch at hand. A function of what the run has computed, so that
// any pool, and a run that was resumed, grows at the same steps. docs/global_batch.md has the reasons.
#pragma once

#include <cstdint>
#include <optional>

#include "base/batch_growth.h"
#include "learn/noise_scale.h"
#include "learn/optimizer.h"
#include "w5xde/result.h"

namespace w5xde {

// A step has this many slots at most.
inline constexpr std::uint64_t kStepSlotsMax = 1u << 20;

enum class BatchPolicy : std::uint8_t { fixed, grows };
// What a larger batch does to the learning rate.
enum class RateScaling : std::uint8_t { by_optimizer, linear, sqrt, none };

struct GrowthOptions {
  BatchPolicy policy = BatchPolicy::fixed;
  std::uint64_t samples_max = 0;  // a step; 0: 64 times the first
  std::uint64_t every = 50;       // steps between two growths, at least
  RateScaling scaling = RateScaling::by_optimizer;

  bool grows() const { return policy == BatchPolicy::grows; }
  Status check() const;
};

class GlobalBatch {
 public:
  struct Options {
    GrowthOptions growth;
    std::uint32_t batch = 1;  // samples a slot
    std::uint32_t slots = 1;  // of the first steps
    OptimizerOptions optimizer;
  };

  // Goes on from the state of a checkpoint.
  GlobalBatch(const Options& options, const BatchGrowthState& state);

  // The halves of the step that is being added up. They count when it is committed: a checkpoint written
  // before must not know of them, because the step is done again.
  void measure(const HalfSum& left, const HalfSum& right, std::uint64_t gradient_floats, ThreadPool* pool) {
    measured_ = noise_;
    measured_->add(left, right, gradient_floats, pool);
  }
  // This step is committed. Returns the growth from growth.step on, if it causes one.
  std::optional<BatchGrowth> committed(std::uint64_t step);

  std::uint32_t slots_of(const BatchGrowth& growth) const {
    return static_cast<std::uint32_t>(growth.samples / options_.batch);
  }
  // The factor of the learning rate in a step of `slots` slots.
  double rate_factor(std::uint32_t slots) const;
  double noise_scale() const { return noise_.value(); }
  const std::vector<BatchGrowth>& growths() const { return growths_; }
  BatchGrowthState state() const;

 private:
  Options options_;
  NoiseScale noise_;                    // of the steps that are committed
  std::optional<NoiseScale> measured_;  // with the one that is not
  std::vector<BatchGrowth> growths_;
};

}  // namespace w5xde
