#include "charts/bar_chart.h"

#include <gtest/gtest.h>

#include <limits>
#include <regex>

namespace w5xde {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

// Every place and size is a plain number or a percentage from 0 to 100.
void expect_sound(const std::string& svg) {
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  const std::regex attribute(R"re( (x|y|x1|x2|y1|y2|cx|cy|r|width|height|fill-opacity)="([^"]*)")re");
  for (std::sregex_iterator found(svg.begin(), svg.end(), attribute), end; found != end; ++found) {
    const std::string value = (*found)[2];
    EXPECT_TRUE(std::regex_match(value, std::regex(R"(-?\d+(\.\d+)?%?)"))) << found->str();
    if (value.ends_with("%")) {
      EXPECT_GE(std::stod(value), 0) << found->str();
      EXPECT_LE(std::stod(value), 100) << found->str();
    }
  }
  EXPECT_FALSE(has(svg, "nan") || has(svg, "inf")) << svg;
  EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
}

TEST(BarChartTest, the_largest_is_as_wide_as_the_chart) {
  const std::string svg = bar_chart("t", {{.label = "a", .value = 50, .text = "50"},
                                          {.label = "b", .value = 100, .text = "100", .best = true}});
  expect_sound(svg);
  EXPECT_TRUE(has(svg, R"(class="bar" x="0" y="20" width="50.00%")")) << svg;
  EXPECT_TRUE(has(svg, R"(class="bar best" x="0" y="66" width="100.00%")")) << svg;
}

TEST(BarChartTest, what_is_unknown_has_a_label_and_no_bar) {
  const std::string svg = bar_chart("t", {{.label = "a", .value = Bar::kNone, .text = "–"},
                                          {.label = "b", .value = kInfinity, .text = "–"}});
  expect_sound(svg);
  EXPECT_EQ(count(svg, "class=\"bar"), 0u);
  EXPECT_TRUE(has(svg, ">a</text>") && has(svg, ">b</text>"));
}

TEST(BarChartTest, nothing_but_zeros_and_nothing_at_all_are_charts_too) {
  expect_sound(bar_chart("t", {{.label = "a", .value = 0, .text = "0"}}));
  expect_sound(bar_chart("t", {}));
}

TEST(BarChartTest, whiskers_and_markers_make_the_scale_larger) {
  const std::string svg =
      bar_chart("t", {{.label = "a", .value = 50, .text = "50", .low = 40, .high = 80, .marker = 100}});
  expect_sound(svg);
  EXPECT_TRUE(has(svg, R"(width="50.00%")")) << svg;
  EXPECT_TRUE(has(svg, R"(class="whisker" x1="40.00%")")) << svg;
  EXPECT_TRUE(has(svg, R"(class="marker" x1="100.00%")")) << svg;
}

TEST(BarChartTest, labels_and_titles_are_escaped) {
  const std::string svg = bar_chart("\"<", {{.label = "<script>", .value = 1, .text = "&"}});
  EXPECT_FALSE(has(svg, "<script>"));
  EXPECT_TRUE(has(svg, "aria-label=\"&quot;&lt;\""));
}

}  // namespace
}  // namespace w5xde
