#pragma once

#include <string>

#include "coordinator/advice.h"

namespace w5xde {

struct Plan {
  std::string link;  // as it was said
  bool measured = false;
  Situation situation;
  Prediction prediction;  // of the settings that were asked for
  Advice advice;
};

std::string to_text(const Plan& plan);  // for a terminal of 100 columns, ends with a newline
std::string to_json(const Plan& plan);  // indented, ends with a newline

}  // namespace w5xde
