#include "charts/line_chart.h"

#include <gtest/gtest.h>

#include <limits>
#include <regex>

namespace w5xde {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++found;
  return found;
}

// What each polyline of this class is drawn through.
std::vector<std::string> drawn(const std::string& svg, const std::string& style) {
  const std::regex line("<polyline class=\"" + style + "\" stroke=\"[^\"]*\" points=\"([^\"]*)\"/>");
  std::vector<std::string> points;
  for (std::sregex_iterator found(svg.begin(), svg.end(), line), end; found != end; ++found)
    points.push_back((*found)[1]);
  return points;
}

TEST(RoundTicksTest, ticks_are_round_and_cover_the_values) {
  EXPECT_EQ(round_ticks(0, 2.31, 6), (std::vector<double>{0, 0.5, 1, 1.5, 2, 2.5}));
  EXPECT_EQ(round_ticks(0, 625, 8), (std::vector<double>{0, 100, 200, 300, 400, 500, 600, 700}));
  EXPECT_EQ(round_ticks(120, 180, 6), (std::vector<double>{120, 130, 140, 150, 160, 170, 180}));
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{
           {0, 1}, {-3, 4}, {0.0123, 0.0124}, {1e9, 3e9}, {5, 5}, {0, 0}, {-2, -2}}) {
    const auto ticks = round_ticks(low, high, 6);
    ASSERT_GE(ticks.size(), 2u) << low;
    EXPECT_LE(ticks.size(), 14u) << low;
    EXPECT_LE(ticks.front(), low + 1e-9);
    EXPECT_GE(ticks.back(), high - 1e-9);
  }
}

TEST(LineChartTest, every_point_is_drawn_where_its_scale_puts_it) {
  const std::string svg =
      line_chart("t", "step", {{"loss", {{.name = "a", .points = {{0, 2}, {50, 1}, {100, 0}}}}}});
  const auto lines = drawn(svg, "plain");
  ASSERT_EQ(lines.size(), 2u) << "the legend's and the run's:\n" << svg;
  // 844 pixels across from 88 on, 340 down from the legend's end on.
  EXPECT_EQ(lines[1], "88.00,78.00 510.00,248.00 932.00,418.00");
}

TEST(LineChartTest, a_value_that_is_no_number_makes_a_gap) {
  const std::string svg = line_chart(
      "t", "step",
      {{"loss",
        {{.points = {{1, 3}, {2, 2}, {3, kNone}, {4, std::numeric_limits<double>::infinity()}, {5, 1}}}}}});
  const auto lines = drawn(svg, "plain");
  ASSERT_EQ(lines.size(), 2u) << svg;
  EXPECT_EQ(count(lines[0], ","), 2u);
  EXPECT_EQ(count(lines[1], ","), 1u);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(LineChartTest, each_point_of_a_dotted_line_says_what_it_is) {
  const std::string svg = line_chart(
      "t", "step",
      {{"accuracy", {{.style = Line::Style::dotted, .points = {{500, 0.8131}, {2350, 0.8856}}}}, true}});
  EXPECT_EQ(count(svg, "<circle"), 2u);
  EXPECT_NE(svg.find("<title>2,350: 0.8856</title>"), std::string::npos) << svg;
  EXPECT_NE(svg.find(">84 %</text>"), std::string::npos) << svg;
}

TEST(LineChartTest, lines_have_their_colours_and_a_place_in_the_legend_that_wraps) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < 12; ++i)
    lines.push_back(
        {.name = "runs/a-rather-long-name-" + std::to_string(i), .colour = i, .points = {{1, 1}}});
  const std::string svg = line_chart("t", "step", {{"loss", lines}});
  EXPECT_EQ(count(svg, "runs/a-rather-long-name-"), 12u);
  const std::regex legend(R"re(<text x="([\d.]+)" y="[\d.]+" text-anchor="start">runs)re");
  for (std::sregex_iterator found(svg.begin(), svg.end(), legend), end; found != end; ++found)
    EXPECT_LT(std::stod((*found)[1]), 900);
  EXPECT_NE(svg.find("stroke=\"#d55e00\""), std::string::npos);
}

TEST(LineChartTest, is_one_file_that_needs_nothing_else_and_words_are_escaped) {
  const std::string svg = line_chart("<&>", "step", {{"loss", {}}, {"accuracy", {}, true}});
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find("&lt;&amp;&gt;</text>"), std::string::npos);
  EXPECT_EQ(count(svg, "http"), 1u) << "only the name of the format";
  EXPECT_EQ(count(svg, "<text"), count(svg, "</text>"));
}

}  // namespace
}  // namespace w5xde
