#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "w5xde/result.h"

namespace w5xde {

// The learning rate of a step, as a factor of the base rate: a linear warm-up, then a course. The same
// numbers as PyTorch's StepLR, CosineAnnealingLR and LinearLR, from the step alone: resuming needs no state.
struct Schedule {
  enum class Course { constant, step, cosine };

  Course course = Course::constant;
  std::uint64_t warmup_steps = 0;  // from warmup_factor up to 1, in equal parts
  double warmup_factor = 1.0 / 3;
  std::uint64_t step_every = 0;  // course step: multiply by gamma after this many steps
  double gamma = 0.1;
  std::uint64_t total_steps = 0;  // course cosine: down to minimum_factor at this step
  double minimum_factor = 0;

  // For step 0, 1, ….
  double factor(std::uint64_t step) const;
  Status check() const;
};

// "constant", "step:EVERY,GAMMA", "cosine" (over the run), each with "+warmup:STEPS" or not. Where the run's
// end is not known yet, `total_steps` is 1, and the caller sets it later.
Result<Schedule> parse_schedule(std::string_view text, std::uint64_t total_steps);
std::string to_string(const Schedule& schedule);

}  // namespace w5xde
