// What the report of `w5xde bench original` says: the same in a terminal and on the page.
#pragma once

#include <string>
#include <vector>

#include "bench/report.h"
#include "charts/bar_chart.h"

namespace w5xde {

struct Section {
  using Line = std::vector<std::string>;

  std::string title;
  std::vector<std::string> paragraphs = {};
  std::vector<Bar> bars = {};    // the page draws them above the table
  std::string caption = {};      // what the marks of the bars mean
  std::vector<Line> table = {};  // its head first; empty: no table
};

// What was measured, part by part, and how. Parts without figures have no section.
std::vector<Section> sections_of(const BenchReport& report);

// Rounds without figures, and whatever else the reader should know first.
std::vector<std::string> warnings_of(const BenchReport& report);

// Of rows that were compared with each other: which did most and least, and which differences are noise.
// Empty when fewer than two have figures.
std::string comparison_text(const std::vector<Row>& rows);
// How many forecasts were right, and which was farthest off. Empty when none has a verdict.
std::string forecast_text(const BenchReport& report);

}  // namespace w5xde
