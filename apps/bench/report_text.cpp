#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "bench/report.h"
#include "bench/report_sentences.h"
#include "bench/studies.h"
#include "figure_text.h"

namespace w5xde {

namespace {

using Line = std::vector<std::string>;

// In characters, not in the bytes that UTF-8 makes of them.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

// The first column to the left, the others to the right, each as wide as its widest cell.
std::string table(const std::vector<Line>& lines) {
  std::vector<std::size_t> widths(lines.front().size());
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], width_of(line[i]));
  }
  std::string text;
  for (const Line& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string padding(widths[i] - width_of(line[i]), ' ');
      text += i == 0 ? "  " + line[i] + padding : "  " + padding + line[i];
    }
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  return text;
}

Line line_of(const Row& row, bool beside_published) {
  const Figures& ours = row.figures;
  Line line = {row.cell.preset};
  if (beside_published) {
    const Published original = published(row.cell.preset);
    line.insert(line.end(), {count_text(original.batches), rate_text(original.bytes_per_second),
                             decimal_text(original.ratio)});
  }
  line.insert(line.end(), {count_text(ours.batches), rate_text(ours.bytes_per_second),
                           decimal_text(ours.network_seconds), decimal_text(ours.compression_seconds),
                           decimal_text(ours.compression_ratio), size_text(ours.memory_bytes),
                           count_text(ours.node_batches_min) + "…" + count_text(ours.node_batches_max),
                           percent_text(ours.node_spread),
                           decimal_text(ours.loss_first, 3) + " → " + decimal_text(ours.loss_last, 3)});
  return line;
}

std::string presets_text(const std::vector<Row>& rows) {
  const Cell& cell = rows.front().cell;
  // The original measured its own model, on one machine.
  const bool beside_published = cell.workload == "original" && cell.link == "loopback";
  Line above = {""}, head = {"preset"};
  if (beside_published) {
    above.insert(above.end(), {"original's", "published", ""});
    head.insert(head.end(), {"batches/30 s", "net/s", "ratio"});
  }
  above.insert(above.end(), {"", "", "seconds", "of 30", "", "", "batches", "between", ""});
  head.insert(head.end(),
              {"batches/30 s", "net/s", "network", "compress", "ratio", "memory", "a node", "nodes", "loss"});
  std::vector<Line> lines = {above, head};
  for (const Row& row : rows) lines.push_back(line_of(row, beside_published));
  return fmt::format("{}, {}\n{}\n", cell.workload, cell.link, table(lines));
}

std::string study_text(const std::vector<Row>& rows, const std::string& title,
                       const std::function<std::string(const Row&)>& label,
                       const std::function<double(const Row&)>& part) {
  std::vector<Line> lines = {{"", "batches/30 s", "ratio", "net/s", "memory"}};
  for (const Row& row : rows) {
    lines.push_back({label(row), count_text(row.figures.batches), decimal_text(part(row)),
                     rate_text(row.figures.bytes_per_second), size_text(row.figures.memory_bytes)});
  }
  return title + "\n" + table(lines) + "\n";
}

std::string forecasts_text(const BenchReport& report) {
  if (report.forecasts.empty()) return "";
  std::vector<Line> lines = {{"", "predicted", "measured", "", "within", ""},
                             {"w5xde plan", "batches/30 s", "batches/30 s", "ratio", "25 %", "waits for"}};
  for (const Forecast& forecast : report.forecasts) {
    const ForecastVerdict verdict = report.verdict(forecast);
    lines.push_back({name_of(forecast.cell), count_text(forecast.batches()), count_text(verdict.measured),
                     decimal_text(verdict.ratio), yes_or_no(verdict), forecast.bottleneck});
  }
  return fmt::format("predicted beforehand; ratios are medians of the rounds' own\n{}{}\n\n", table(lines),
                     forecast_sentence(report));
}

}  // namespace

std::string to_text(const BenchReport& report) {
  std::string text;
  for (const char* workload : {"original", "2M"}) {
    for (const char* link : {"loopback", "100mbit"}) {
      const auto rows = report.group("presets", workload, link);
      if (!rows.empty()) text += presets_text(rows);
    }
  }
  for (const char* workload : {"original", "2M"}) {
    const auto rows = report.group("buffers", workload, "loopback");
    if (rows.empty()) continue;
    text += study_text(
        rows, fmt::format("socket buffers, {}, adaptive; ratio to the best", workload),
        [](const Row& row) { return fmt::format("{} MB", row.cell.socket_buffer_bytes >> 20); },

        [best = best_of(rows)](const Row& row) { return best ? ratio(row, *best) : kUnknown; });
  }
  const auto logging = report.group("logging", "original", "loopback");
  if (!logging.empty()) {
    const auto silent = std::ranges::find(logging, "silent", [](const Row& row) { return row.cell.log; });
    text += study_text(
        logging, "logging, original, adaptive; ratio to silent", [](const Row& row) { return row.cell.log; },

        [&](const Row& row) { return silent == logging.end() ? kUnknown : ratio(row, *silent); });
  }
  text += forecasts_text(report);
  for (const Forecast& forecast : report.forecasts) {
    if (forecast.problem.empty()) continue;
    text += fmt::format("no prediction for {}: {}\n", name_of(forecast.cell), forecast.problem);
  }
  for (const Row& row : report.rows) {
    if (row.problem.empty()) continue;
    text += fmt::format("no figures in a round of {}, {}, {}: {}\n", row.cell.preset, row.cell.workload,
                        row.cell.link, row.problem);
  }
  for (const Row& row : report.rows) {
    if (row.cold_rounds > 0) text += cold_sentence(row) + "\n";
  }
  if (!report.rows.empty()) {
    text += fmt::format("warmed up before batches are counted: {}; all else is of the whole run\n",
                        warm_up_list(report.rows));
  }
  if (!report.conditions.link.empty()) text += fmt::format("100mbit: {}\n", report.conditions.link);
  return text;
}

}  // namespace w5xde
