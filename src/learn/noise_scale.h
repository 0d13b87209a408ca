// How large a batch is worth its samples.
//
// A gradient of n samples is the true one, G, plus noise: E|g|² = |G|² + tr(Σ) / n, where Σ is the covariance
// of one sample's gradient. The noise scale tr(Σ) / |G|² is the batch at which noise and signal are equal;
// far larger ones waste samples (McCandlish et al., An Empirical Model of Large-Batch Training).
//
// The two halves of a step's tree (learn/reduction.h) give both: E g₁·g₂ = |G|² and
// E|g₁ - g₂|² = tr(Σ) (1/n₁ + 1/n₂). They depend on slot numbers alone: any pool gets the same bits.
#pragma once

#include <cstdint>

#include "base/thread_pool.h"
#include "learn/reduction.h"

namespace w5xde {

class NoiseScale {
 public:
  // Of one step alone, either may be far off or even negative.
  struct Means {
    std::uint64_t steps = 0;  // that went into them
    double noise = 0;         // tr(Σ)
    double signal = 0;        // |G|²
  };

  // Means over about `steps` steps, which continue from `means`.
  NoiseScale(std::uint64_t steps, const Means& means)
      : weight_(1 / static_cast<double>(steps)), means_(means) {}

  // The first `gradient_floats` of a half's sum are its gradient.
  void add(const HalfSum& left, const HalfSum& right, std::uint64_t gradient_floats, ThreadPool* pool);

  const Means& means() const { return means_; }
  // In samples; NaN while the signal is lost in the noise.
  double value() const;
  // True also when the signal is lost in the noise.
  bool at_least(double samples) const { return means_.noise > 0 && means_.noise >= samples * means_.signal; }

 private:
  double weight_;  // of a step
  Means means_;
};

}  // namespace w5xde
