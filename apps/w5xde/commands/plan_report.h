#pragma once

#include <string>
#include <string_view>

#include "forecast/advice.h"

namespace w5xde {

struct Plan {
  std::string link;  // as it was given
  bool measured = false;
  Situation situation;
  Prediction prediction;  // of the settings that were asked for
  Advice advice;
};

std::string to_text(const Plan& plan);  // for a terminal of 100 columns, ends with a newline
std::string to_json(const Plan& plan);  // indented, ends with a newline

// What to_json wrote of the settings that were asked for.
struct PlanFigures {
  double slot_seconds = 0;
  double batches_per_second = 0;
  std::string bottleneck;
};
Result<PlanFigures> plan_figures_from_json(std::string_view text);  // corrupt when it is not a plan

}  // namespace w5xde
