// Charts as inline SVG. Places across are percentages and places down are pixels, so that a chart is as wide
// as its page and its text as large as the page's. Colours are the page's: classes, no values. A figure that
// is not finite is left out, never drawn.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "record/summary.h"

namespace w5xde {

// As text between tags or in quotes.
std::string escape(std::string_view text);

// From nothing to the largest, one below the other.
struct Bar {
  std::string label;
  double value = kUnknown;
  std::string text;                        // the value, for people
  double low = kUnknown, high = kUnknown;  // what single rounds came to
  double marker = kUnknown;                // somebody else's figure, on the same scale
  bool best = false;
};
std::string bar_chart(std::string_view title, const std::vector<Bar>& bars);

// Parts of a whole, one colour each: the classes part-0, part-1, …
struct Stack {
  std::string label;
  std::vector<double> parts;
  std::string text;
};
std::string stacked_chart(std::string_view title, const std::vector<Stack>& stacks, double whole);

// From low to high, on a scale that begins at nothing.
struct Range {
  std::string label;
  double low = kUnknown, high = kUnknown;
  std::string text;
};
std::string range_chart(std::string_view title, const std::vector<Range>& ranges);

// From left to right at even distances, on a scale that begins at nothing.
struct Point {
  std::string label;
  double value = kUnknown;
  std::string text;
  double low = kUnknown, high = kUnknown;
};
std::string line_chart(std::string_view title, const std::vector<Point>& points);

// Shares from 0 to 1, the darker the larger.
struct HeatRow {
  std::string label;
  std::vector<double> shares;  // one a column
};
std::string heat_chart(std::string_view title, const std::vector<std::string>& columns,
                       const std::vector<HeatRow>& rows);

}  // namespace w5xde
