#include <gtest/gtest.h>

#include <limits>
#include <regex>
#include <vector>

#include "bench/report.h"
#include "bench/studies.h"

namespace w5xde {
namespace {

BenchReport full_report() {
  BenchReport report{.conditions = {.processor = "p", .cores = 2, .nodes = 10, .rounds = 3, .seconds = 30}};
  double batches = 1000;
  for (const Cell& cell : all_cells()) {
    Row row{.cell = cell, .warm_up_seconds = warm_up_seconds(cell)};
    for (const Column& column : kColumns) row.figures.*column.value = 1;
    row.figures.batches = batches += 10;
    row.rounds_batches = {batches - 5, batches, batches + 5};
    report.rows.push_back(row);
    if (cell.part == "presets" && cell.preset == "adaptive") {
      report.forecasts.push_back({.cell = cell, .bottleneck = "compute"});
      for (const double measured : row.rounds_batches)
        report.forecasts.back().batches.push_back(measured * 1.2);
    }
  }
  return report;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Every tag that is opened is closed, in order.
void expect_balanced(const std::string& html) {
  std::vector<std::string> open;
  const std::regex tag(R"(<(/?)([a-z0-9]+)[^>]*?(/?)>)");
  for (std::sregex_iterator found(html.begin(), html.end(), tag), end; found != end; ++found) {
    const std::string name = (*found)[2];
    if (name == "meta" || (*found)[3] == "/") continue;
    if ((*found)[1] == "/") {
      ASSERT_FALSE(open.empty()) << name;
      ASSERT_EQ(open.back(), name) << html.substr(0, static_cast<std::size_t>(found->position()) + 40);
      open.pop_back();
    } else {
      open.push_back(name);
    }
  }
  EXPECT_TRUE(open.empty());
}

void expect_no_strange_numbers(const std::string& html) {
  EXPECT_FALSE(
      std::regex_search(html, std::regex(R"re(\bnan\b|\binf\b|-nan|=""|"-\d)re", std::regex::icase)));
}

TEST(ReportHtmlTest, every_part_has_its_section_its_chart_and_its_table) {
  const std::string html = to_html(full_report());
  expect_balanced(html);
  expect_no_strange_numbers(html);
  for (const char* title :
       {"the original&#39;s 430 parameters, loopback", "1.86 million parameters, 100 Mbit/s",
        "Predicted by w5xde plan", "What the original published", "Socket buffers, preset adaptive",
        "Logging, preset adaptive", "How it was measured"}) {
    EXPECT_TRUE(has(html, title)) << title;
  }
  const auto count = [&](const std::string& part) {
    std::size_t found = 0;
    for (std::size_t at = 0; (at = html.find(part, at)) != std::string::npos; ++at) ++found;
    return found;
  };
  EXPECT_EQ(count("<table>"), 4u + 2 + 1 + 1 + 1) << "presets, buffers, logging, predicted, published";
  EXPECT_EQ(count("<svg "), 4u + 2 + 1 + 1);
}

TEST(ReportHtmlTest, a_row_has_every_figure) {
  BenchReport report;
  report.rows = {{.cell = {"presets", "adaptive", "2M", "loopback"},
                  .figures = {.batches = 1234,
                              .bytes_per_second = 2.5e6,
                              .network_seconds = 3.25,
                              .compression_seconds = 4.5,
                              .compute_seconds = 5.75,
                              .compression_ratio = 1.5,
                              .memory_bytes = 42e6,
                              .node_batches_min = 100,
                              .node_batches_max = 150,
                              .node_spread = 0.5,
                              .loss_first = 2.25,
                              .loss_last = 0.125},
                  .rounds_batches = {1200, 1234, 1300}}};
  EXPECT_TRUE(has(to_html(report),
                  "<td>adaptive</td><td>1,234</td><td>1,200…1,300</td><td>1.00</td><td>2.5 MB/s</td>"
                  "<td>1.50</td><td>5.75</td><td>4.50</td><td>3.25</td><td>42.0 MB</td><td>100…150</td>"
                  "<td>50.0 %</td><td>2.250 → 0.125</td>"));
}

TEST(ReportHtmlTest, it_says_what_is_of_a_warm_pool_and_what_of_the_whole_run) {
  BenchReport report = full_report();
  const std::string html = to_html(report);
  EXPECT_TRUE(
      has(html,
          "after a warm-up: 12 s (2M 100mbit), 1 s (original loopback, original 100mbit, 2M loopback). "
          "All other figures are of the whole run"));
  EXPECT_FALSE(has(html, "too few steps"));
  report.rows[0].cold_rounds = 1;
  EXPECT_TRUE(has(to_html(report), "early, original, loopback: in 1 of 3 rounds too few steps"));
}

TEST(ReportHtmlTest, predictions_have_a_section_where_there_are_any) {
  BenchReport report = full_report();
  for (double& batches : report.forecasts[0].batches) batches *= 10;
  report.forecasts[1] = {.cell = report.forecasts[1].cell, .problem = "<no> engine"};
  const std::string html = to_html(report);
  expect_balanced(html);
  expect_no_strange_numbers(html);
  EXPECT_TRUE(has(html, "2 of 3 predictions are within"));
  EXPECT_TRUE(has(html, "<td>1.20</td><td>yes</td><td>compute</td>"));
  EXPECT_TRUE(has(html, "<td>12.00</td><td>no</td>"));
  EXPECT_TRUE(has(html, "No prediction for adaptive, original, 100mbit: &lt;no&gt; engine"));
  report.forecasts.clear();
  EXPECT_FALSE(has(to_html(report), "Predicted by w5xde plan"));
}

TEST(ReportHtmlTest, it_needs_nothing_but_itself) {
  const std::string html = to_html(full_report());
  for (const char* outside : {"http:", "https:", "src=", "<link", "<script", "@import", "url("}) {
    EXPECT_FALSE(has(html, outside)) << outside;
  }
}

TEST(ReportHtmlTest, what_was_not_measured_has_no_section) {
  BenchReport report = full_report();
  std::erase_if(report.rows, [](const Row& row) { return row.cell.part != "logging"; });
  report.forecasts.clear();
  const std::string html = to_html(report);
  expect_balanced(html);
  EXPECT_TRUE(has(html, "Logging"));
  EXPECT_FALSE(has(html, "Socket buffers") || has(html, "1.86 million"));
  expect_balanced(to_html({}));
}

TEST(ReportHtmlTest, empty_cells_are_dashes) {
  BenchReport report = full_report();
  for (Row& row : report.rows) {
    row.figures = {};
    row.rounds_batches = {kUnknown, kUnknown, kUnknown};
  }
  report.conditions.seconds = std::numeric_limits<double>::infinity();
  const std::string html = to_html(report);
  expect_balanced(html);
  expect_no_strange_numbers(html);
  EXPECT_TRUE(has(html, "<td>–</td>"));
}

TEST(ReportHtmlTest, words_from_outside_are_escaped) {
  BenchReport report = full_report();
  report.conditions.processor = "<b>\"fast\" & co";
  report.conditions.link = "<i>";
  report.rows[0].cell.preset = "<script>alert(1)</script>";
  report.rows[1].problem = "</main><u>";
  const std::string html = to_html(report);
  expect_balanced(html);
  for (const char* raw : {"<b>", "<script", "<u>", "<i>&"}) EXPECT_FALSE(has(html, raw)) << raw;
  EXPECT_TRUE(has(html, "&lt;b&gt;&quot;fast&quot; &amp; co"));
}

TEST(ReportHtmlTest, a_report_that_ends_early_or_lacks_rounds_says_so) {
  BenchReport report = full_report();
  report.conditions.complete = false;
  report.rows[3].problem = "no port";
  const std::string html = to_html(report);
  EXPECT_TRUE(has(html, "Stopped before the last round"));
  EXPECT_TRUE(has(html, "no port"));
}

}  // namespace
}  // namespace w5xde
