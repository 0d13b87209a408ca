// No gradient is not a gradient of zeros: torch.optim leaves a parameter alone that no sample used, and
// decays and moves one whose gradient is zero.
//
// A contribution has -0.0 in every float of a parameter that has no gradient. In floating point -0.0 + x is x
// for every x, +0.0 included, so that a sum is -0.0 only where every addend was: where no slot of the step
// had a gradient for the parameter. The parameter's first float decides; mark_gradient() keeps it from being
// -0.0 by chance. A lossy codec cannot tell the two zeros apart: what has passed one counts as a gradient.
#pragma once

#include <bit>
#include <cstdint>

namespace w5xde {

inline constexpr float kNoGradient = -0.0F;

// From the first float of a parameter in a contribution, or in a sum of contributions.
inline bool has_gradient(float first) {
  return std::bit_cast<std::uint32_t>(first) != std::bit_cast<std::uint32_t>(kNoGradient);
}
// Turns -0.0 into +0.0, and leaves every other number as it is.
inline void mark_gradient(float& first) {
  first += 0.0F;
}

}  // namespace w5xde
