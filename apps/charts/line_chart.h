// Lines over a common axis, as a file of SVG that needs nothing else: light, with its own colours and sizes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace w5xde {

struct Line {
  enum class Style {
    plain,
    faint,   // behind a plain one that is smoother
    dotted,  // dashed, with a dot at each point
  };

  std::string name;  // in the legend; empty: not there
  std::size_t colour = 0;
  Style style = Style::plain;
  std::vector<std::pair<double, double>> points;  // x and y; one that is not finite makes a gap
};

// Panels stand one below the other.
struct Panel {
  std::string y_label;
  std::vector<Line> lines;
  bool share = false;  // y is from 0 to 1 and written as a percentage
};

std::string line_chart(std::string_view title, std::string_view x_label, const std::vector<Panel>& panels);

// Round numbers, about `count` of them, from `low` or below it to `high` or above.
std::vector<double> round_ticks(double low, double high, unsigned count);

}  // namespace w5xde
