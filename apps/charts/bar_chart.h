// Charts as inline SVG. Positions across are percentages and positions down are pixels, so that a chart is as
// wide as its page and its text as large as the page's. Colours are the page's classes. A figure that is not
// finite is not drawn.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "record/summary.h"

namespace w5xde {

// As text between tags or in quotes.
std::string escape(std::string_view text);

struct Bar {
  std::string label;
  double value = kUnknown;
  std::string text;                        // the value, for people
  double low = kUnknown, high = kUnknown;  // the least and the most of the rounds
  double marker = kUnknown;                // a figure to compare with, on the same scale
  bool best = false;
};
// One bar below the other, on a scale from 0 to the largest figure.
std::string bar_chart(std::string_view title, const std::vector<Bar>& bars);

}  // namespace w5xde
