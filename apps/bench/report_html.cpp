// report.html: a section for each workload and link, what the studies found, and how it was measured.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/charts.h"
#include "bench/report.h"
#include "bench/report_sentences.h"
#include "bench/report_style.h"
#include "bench/studies.h"
#include "figure_text.h"

namespace w5xde {

namespace {

using Line = std::vector<std::string>;

struct Named {
  const char* name;
  const char* title;
};
constexpr std::array<Named, 2> kWorkloads = {{
    {"original", "The original’s model (430 parameters)"},
    {"2M", "1.86 million parameters"},
}};
constexpr std::array<Named, 2> kLinks = {{{"loopback", "loopback"}, {"100mbit", "100 Mbit/s"}}};

std::string table(const Line& head, const std::vector<Line>& lines) {
  std::string html = "<div class=\"scroll\"><table><thead><tr>";
  for (const std::string& cell : head) html += "<th>" + escape(cell) + "</th>";
  html += "</tr></thead><tbody>";
  for (const Line& line : lines) {
    html += "<tr>";
    for (const std::string& cell : line) html += "<td>" + escape(cell) + "</td>";
    html += "</tr>";
  }
  return html + "</tbody></table></div>\n";
}

std::string figure(std::string_view title, const std::string& chart, std::string_view caption,
                   const std::string& below) {
  std::string html = fmt::format("<figure><h3>{}</h3>{}", escape(title), chart);
  if (!caption.empty()) html += fmt::format("<figcaption>{}</figcaption>", escape(caption));
  return html + below + "</figure>\n";
}

// A number and its unit stay on one line.
std::string unbroken(std::string html) {
  for (std::size_t at = 0; (at = html.find(" %", at)) != std::string::npos;) html.replace(at, 1, "&nbsp;");
  return html;
}

std::string paragraph(const std::string& text, std::string_view kind = "") {
  if (text.empty()) return "";
  return fmt::format("<p{}>{}</p>\n", kind.empty() ? "" : fmt::format(" class=\"{}\"", kind),
                     unbroken(escape(text)));
}

std::pair<double, double> round_range(const Row& row) {
  std::pair<double, double> range = {kUnknown, kUnknown};
  for (const double batches : row.rounds_batches) {
    range = {std::fmin(range.first, batches), std::fmax(range.second, batches)};
  }
  return range;
}

std::string range_text(double low, double high) {
  return count_text(low) + "…" + count_text(high);
}

// The original's figures on our scale: its fastest preset stands where ours of that name does.
double published_scale(const std::vector<Row>& rows) {
  const Published& fastest = *std::ranges::max_element(kPublished, {}, &Published::batches);
  const auto ours = std::ranges::find(rows, fastest.preset,
                                      [](const Row& row) -> std::string_view { return row.cell.preset; });
  return ours == rows.end() ? kUnknown : ours->figures.batches / fastest.batches;
}

std::string batches_figure(const std::vector<Row>& rows) {
  const Row* best = best_of(rows);
  const bool as_published = rows.front().cell.workload == "original" && rows.front().cell.link == "loopback";
  const double scale = as_published ? published_scale(rows) : kUnknown;
  std::vector<Bar> bars;
  std::vector<Line> lines;
  for (const Row& row : rows) {
    const auto [low, high] = round_range(row);
    bars.push_back({.label = row.cell.preset,
                    .value = row.figures.batches,
                    .text = count_text(row.figures.batches),
                    .low = low,
                    .high = high,
                    .marker = published(row.cell.preset).batches * scale,
                    .best = &row == best});
    lines.push_back(
        {row.cell.preset, count_text(row.figures.batches), range_text(low, high),
         decimal_text(best ? ratio(row, *best) : kUnknown), rate_text(row.figures.bytes_per_second),
         decimal_text(row.figures.compression_ratio), size_text(row.figures.memory_bytes),
         decimal_text(row.figures.loss_first, 3) + " → " + decimal_text(row.figures.loss_last, 3)});
  }
  std::string caption =
      "The bar is the median of the rounds, the thin line spans them. " + warm_up_sentence(rows);
  if (std::isfinite(scale)) {
    caption +=
        " The upright marks are the original’s published figures, from another machine and scaled so that "
        "its "
        "direct-tensor stands where ours does: compare the pattern, not the height.";
  }
  return figure(
      "Batches in 30 s", bar_chart("Batches in 30 s by preset", bars), caption,
      table({"preset", "batches/30 s", "rounds", "of the best", "net", "ratio", "memory", "loss"}, lines));
}

std::string time_figure(const std::vector<Row>& rows) {
  std::vector<Stack> stacks;
  std::vector<Line> lines;
  for (const Row& row : rows) {
    const Figures& f = row.figures;
    stacks.push_back({row.cell.preset,
                      {f.compute_seconds, f.compression_seconds, f.network_seconds},
                      percent_text(f.compute_seconds / kPublishedSeconds) + " computing"});
    lines.push_back({row.cell.preset, decimal_text(f.compute_seconds), decimal_text(f.compression_seconds),
                     decimal_text(f.network_seconds)});
  }
  const std::string legend =
      "<p class=\"legend\"><span><i style=\"background:var(--compute)\"></i>computing</span>"
      "<span><i style=\"background:var(--compression)\"></i>compressing</span>"
      "<span><i style=\"background:var(--network)\"></i>network and waiting</span></p>";
  return figure(
      "Where a node’s 30 s go",
      legend + stacked_chart("Seconds of 30, mean node, by preset", stacks, kPublishedSeconds),
      "The mean node. Waiting includes waiting for a turn on the machine’s cores; it is counted when work is "
      "handed in, so that a node that had none leaves its time open. Of the whole run, warming up included.",
      table({"preset", "compute s", "compress s", "network s"}, lines));
}

std::string spread_figure(const std::vector<Row>& rows) {
  std::vector<Range> ranges;
  std::vector<Line> lines;
  for (const Row& row : rows) {
    const Figures& f = row.figures;
    ranges.push_back(
        {row.cell.preset, f.node_batches_min, f.node_batches_max, percent_text(f.node_spread, 1)});
    lines.push_back({row.cell.preset, count_text(f.node_batches_min), count_text(f.node_batches_max),
                     percent_text(f.node_spread, 1)});
  }
  return figure("How evenly nodes share",
                range_chart("Batches of the idlest and the busiest node by preset", ranges),
                "Batches in 30 s of the idlest node and of the busiest, over the whole run.",
                table({"preset", "idlest", "busiest", "spread"}, lines));
}

std::string group_section(const BenchReport& report, const Named& workload, const Named& link) {
  const auto rows = report.group("presets", workload.name, link.name);
  if (rows.empty()) return "";
  std::string html = fmt::format("<section><h2>{}, {}</h2>\n", workload.title, link.title);
  std::string words = comparison_sentences(rows);
  for (const std::string& more : {time_sentence(rows), spread_sentence(rows), loss_sentence(rows)}) {
    if (!more.empty()) words += (words.empty() ? "" : " ") + more;
  }
  html += paragraph(words);
  if (link.name == std::string_view("100mbit")) {
    html += paragraph("The link: " + report.conditions.link +
                          ". Memory is the coordinator’s alone here; on loopback it is the whole pool’s.",
                      "note");
  }
  html += fmt::format("<div class=\"grid\">{}</div>", batches_figure(rows));
  return html + fmt::format("<div class=\"grid two\">{}{}</div></section>\n", time_figure(rows),
                            spread_figure(rows));
}

std::string ratio_section(const BenchReport& report) {
  std::vector<std::string> columns, presets;
  std::vector<std::vector<Row>> groups;
  for (const Named& workload : kWorkloads) {
    for (const Named& link : kLinks) {
      auto rows = report.group("presets", workload.name, link.name);
      if (rows.empty()) continue;
      columns.push_back(fmt::format("{} {}", workload.name, link.name));
      for (const Row& row : rows) {
        if (std::ranges::find(presets, row.cell.preset) == presets.end()) presets.push_back(row.cell.preset);
      }
      groups.push_back(std::move(rows));
    }
  }
  if (groups.empty()) return "";
  std::vector<HeatRow> heat;
  std::vector<Line> lines;
  for (const std::string& preset : presets) {
    heat.push_back({preset, {}});
    lines.push_back({preset});
    for (const auto& rows : groups) {
      const Row* best = best_of(rows);
      const auto row = std::ranges::find(rows, preset, [](const Row& other) { return other.cell.preset; });
      const double part = best && row != rows.end() ? ratio(*row, *best) : kUnknown;
      heat.back().shares.push_back(part);
      lines.back().push_back(decimal_text(part));
    }
  }
  Line head = {"preset"};
  head.insert(head.end(), columns.begin(), columns.end());
  return "<section><h2>Against the best preset</h2>\n" +
         paragraph("Batches, as a share of the best preset’s in the same column; medians of the rounds.") +
         fmt::format(
             "<div class=\"grid\">{}</div></section>\n",
             figure("Share of the best", heat_chart("Share of the best preset’s batches", columns, heat), "",
                    table(head, lines)));
}

std::string forecast_section(const BenchReport& report) {
  if (report.forecasts.empty()) return "";
  std::vector<Bar> bars;
  std::vector<Line> lines;
  for (const Forecast& forecast : report.forecasts) {
    const ForecastVerdict verdict = report.verdict(forecast);
    const std::string name = name_of(forecast.cell);
    bars.push_back({.label = name,
                    .value = verdict.ratio,
                    .text = decimal_text(verdict.ratio),
                    .marker = verdict.known() ? 1 : kUnknown,
                    .best = verdict.close()});
    lines.push_back({name, count_text(forecast.batches()), count_text(verdict.measured),
                     decimal_text(verdict.ratio), yes_or_no(verdict), forecast.bottleneck});
  }
  return "<section><h2>Predicted beforehand</h2>\n" +
         paragraph(
             "Just before each of these pools, w5xde plan was asked what it would come to. It measures this "
             "machine as it is then: what a slot takes and, where steps are short, what an exchange takes in "
             "a "
             "small pool of its own. The rest it reckons. Ratios are medians of the rounds’ own. " +
             forecast_sentence(report)) +
         fmt::format("<div class=\"grid\">{}</div></section>\n",
                     figure("Predicted, of what was measured",
                            bar_chart("Batches predicted, of those measured", bars),
                            "The upright marks are what was measured; darker bars are within 25 % of it.",
                            table({"", "predicted batches/30 s", "measured batches/30 s", "ratio",
                                   "within 25 %", "waits for"},
                                  lines)));
}

std::string published_section() {
  std::vector<Bar> bars;
  std::vector<Line> lines;
  for (const Published& original : kPublished) {
    const std::string preset(original.preset);
    bars.push_back({.label = preset,
                    .value = original.batches,
                    .text = count_text(original.batches),
                    .best = original.preset == "direct-tensor"});
    lines.push_back({preset, count_text(original.batches), rate_text(original.bytes_per_second),
                     decimal_text(original.ratio)});
  }
  return "<section><h2>As the original published it</h2>\n" +
         paragraph(
             "The figures of the original WIIIIIDE: 10 nodes on one machine, 30 s, another machine and "
             "another "
             "program. They are here for their pattern.") +
         fmt::format("<div class=\"grid\">{}</div></section>\n",
                     figure("Batches in 30 s, as published",
                            bar_chart("Batches in 30 s as the original published", bars), "",
                            table({"preset", "batches/30 s", "net", "ratio"}, lines)));
}

std::string buffers_section(const BenchReport& report) {
  std::string figures, words;
  for (const Named& workload : kWorkloads) {
    const auto rows = report.group("buffers", workload.name, "loopback");
    if (rows.empty()) continue;
    const Row* best = best_of(rows);
    std::vector<Point> points;
    std::vector<Line> lines;
    for (const Row& row : rows) {
      const std::string size = fmt::format("{} MB", row.cell.socket_buffer_bytes >> 20);
      const auto [low, high] = round_range(row);
      points.push_back({size, row.figures.batches, count_text(row.figures.batches), low, high});
      lines.push_back({size, count_text(row.figures.batches), range_text(low, high),
                       decimal_text(best ? ratio(row, *best) : kUnknown),
                       rate_text(row.figures.bytes_per_second)});
    }
    words += paragraph(fmt::format("{}: ", workload.title) + buffers_sentence(rows, report.conditions));
    figures += figure(
        workload.title, line_chart("Batches in 30 s by socket buffer size", points),
        "Batches in 30 s by the size asked for; upright lines span the rounds. " + warm_up_sentence(rows),
        table({"buffers", "batches/30 s", "rounds", "of the best", "net"}, lines));
  }
  if (figures.empty()) return "";
  return "<section><h2>Socket buffers, adaptive preset, loopback</h2>\n" + words +
         fmt::format("<div class=\"grid two\">{}</div></section>\n", figures);
}

std::string logging_section(const BenchReport& report) {
  const auto rows = report.group("logging", "original", "loopback");
  const auto silent = std::ranges::find(rows, "silent", [](const Row& row) { return row.cell.log; });
  if (rows.empty()) return "";
  std::vector<Bar> bars;
  std::vector<Line> lines;
  for (const Row& row : rows) {
    const double kept = silent == rows.end() ? kUnknown : ratio(row, *silent);
    const auto [low, high] = round_range(row);
    bars.push_back({.label = row.cell.log, .value = kept, .text = decimal_text(kept)});
    lines.push_back(
        {row.cell.log, count_text(row.figures.batches), range_text(low, high), decimal_text(kept)});
  }
  return "<section><h2>Logging, the original’s model, loopback</h2>\n" + paragraph(logging_sentence(rows)) +
         fmt::format("<div class=\"grid\">{}</div></section>\n",
                     figure("Batches against a silent pool", bar_chart("Batches against a silent pool", bars),
                            "The log goes to a file. " + warm_up_sentence(rows),
                            table({"log", "batches/30 s", "rounds", "of silent"}, lines)));
}

std::string problems(const BenchReport& report) {
  std::string html;
  if (!report.conditions.complete) {
    html += paragraph("Stopped before the last round: what is here was measured until then.", "warning");
  }
  for (const Forecast& forecast : report.forecasts) {
    if (forecast.problem.empty()) continue;
    html += paragraph(fmt::format("No prediction for {}: {}", name_of(forecast.cell), forecast.problem),
                      "warning");
  }
  for (const Row& row : report.rows) {
    html += paragraph(cold_sentence(row), "warning");
    if (row.problem.empty()) continue;
    html += paragraph(fmt::format("A round of {}, {}, {} has no figures: {}", row.cell.preset,
                                  row.cell.workload, row.cell.link, row.problem),
                      "warning");
  }
  return html;
}

std::string method(const BenchReport& report) {
  const Conditions& c = report.conditions;
  const std::array<std::pair<const char*, std::string>, 9> facts = {{
      {"Date", c.date},
      {"Program", "w5xde " + c.version},
      {"Processor", fmt::format("{}, {} cores", c.processor, c.cores)},
      {"Kernel", c.kernel},
      {"Socket buffers", fmt::format("up to {} to receive, {} to send",
                                     size_text(static_cast<double>(c.receive_buffer_bytes_max)),
                                     size_text(static_cast<double>(c.send_buffer_bytes_max)))},
      {"Pool", fmt::format("{} nodes, batch 32, sync", c.nodes)},
      {"Measured",
       fmt::format("{} s a row, in {} round{}; the rows of a chart take turns, and each round begins "
                   "with another",
                   decimal_text(c.seconds, c.seconds < 10 ? 1 : 0), c.rounds, c.rounds == 1 ? "" : "s")},
      {"Warmed up", warm_up_list(report.rows) + " before the batches of a round are counted"},
      {"100 Mbit/s", c.link.empty() ? "not measured" : c.link},
  }};
  std::string html = "<section><h2>How it was measured</h2>\n<dl>";
  for (const auto& [name, value] : facts) {
    html += fmt::format("<dt>{}</dt><dd>{}</dd>", name, escape(value));
  }
  return html + "</dl></section>\n";
}

}  // namespace

std::string report_html(const BenchReport& report) {
  std::string html = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<title>What each idea is worth</title><style>{}</style></head>\n<body><main>\n"
      "<header><h1>What each idea is worth</h1>\n",
      kReportStyle);
  html += paragraph(
      fmt::format("WIIIIIDE’s presets, from the first generation to the adaptive one, each run as a pool "
                  "of {} nodes on one machine ({}, {} cores) on {}.",
                  report.conditions.nodes, report.conditions.processor, report.conditions.cores,
                  report.conditions.date),
      "lede");
  html += problems(report) + "</header>\n" + ratio_section(report);
  for (const Named& workload : kWorkloads) {
    for (const Named& link : kLinks) html += group_section(report, workload, link);
  }
  html += forecast_section(report) + published_section() + buffers_section(report) + logging_section(report);
  return html + method(report) + "</main></body></html>\n";
}

}  // namespace w5xde
