// Bars as inline SVG. Positions across are percentages and positions down are pixels, so that a chart is as
// wide as its page and its text as large as the page's. Colours are the page's classes. A figure that is not
// finite is not drawn.
#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace w5xde {

struct Bar {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

  std::string label;
  double value = kNone;
  std::string text;                  // the value, for people
  double low = kNone, high = kNone;  // the least and the most of the rounds
  double marker = kNone;             // a figure to compare with, on the same scale
  bool best = false;
};
// One bar below the other, on a scale from 0 to the largest figure.
std::string bar_chart(std::string_view title, const std::vector<Bar>& bars);

}  // namespace w5xde
