#include "bench/report_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/studies.h"
#include "commands/figure_text.h"

namespace w5xde {

namespace {

using Line = Section::Line;

// What a row differs in from those that it is compared with.
std::string label_of(const Row& row) {
  if (row.cell.part == "buffers") return fmt::format("{} MB", row.cell.socket_buffer_bytes >> 20);
  return row.cell.part == "logging" ? row.cell.log : row.cell.preset;
}

std::string title_of(const Cell& cell) {
  const char* part = cell.part == "buffers"   ? "Socket buffers, preset adaptive: "
                     : cell.part == "logging" ? "Logging, preset adaptive: "
                                              : "Presets: ";
  return fmt::format("{}{}, {}", part,
                     cell.workload == "2M" ? "1.86 million parameters" : "the original's 430 parameters",
                     cell.link == "100mbit" ? "100 Mbit/s" : cell.link);
}

// "a", "a and b", "a, b and c"
std::string list_of(const std::vector<std::string>& names) {
  if (names.size() < 2) return names.empty() ? "" : names.front();
  return fmt::format("{} and {}", fmt::join(names.begin(), names.end() - 1, ", "), names.back());
}

std::string range_text(double low, double high) {
  return count_text(low) + "…" + count_text(high);
}

std::pair<double, double> round_range(const Row& row) {
  std::pair<double, double> range = {kUnknown, kUnknown};
  for (const double batches : row.rounds_batches) {
    range = {std::fmin(range.first, batches), std::fmax(range.second, batches)};
  }
  return range;
}

// The widest of the rows' own spreads between rounds; NaN when there was one round.
double noise_of(const std::vector<Row>& rows) {
  double widest = kUnknown;
  for (const Row& row : rows) widest = std::fmax(widest, round_spread(row));
  return widest;
}

// The original's figures on our scale: its fastest preset stands where ours of that name does.
double published_scale(const std::vector<Row>& rows) {
  if (rows.front().cell.workload != "original" || rows.front().cell.link != "loopback") return kUnknown;
  const Published& fastest = *std::ranges::max_element(kPublished, {}, &Published::batches);
  const auto ours = std::ranges::find(rows, fastest.preset, label_of);
  return ours == rows.end() ? kUnknown : ours->figures.batches / fastest.batches;
}

Line line_of(const Row& row, const Row* baseline) {
  const Figures& f = row.figures;
  const auto [low, high] = round_range(row);
  return {label_of(row),
          count_text(f.batches),
          range_text(low, high),
          decimal_text(baseline ? ratio(row, *baseline) : kUnknown),
          rate_text(f.bytes_per_second),
          decimal_text(f.compression_ratio),
          decimal_text(f.compute_seconds),
          decimal_text(f.compression_seconds),
          decimal_text(f.network_seconds),
          size_text(f.memory_bytes),
          range_text(f.node_batches_min, f.node_batches_max),
          percent_text(f.node_spread, 1),
          decimal_text(f.loss_first, 3) + " → " + decimal_text(f.loss_last, 3)};
}

// Rows that were compared with each other.
Section study_section(const std::vector<Row>& rows) {
  const Cell& cell = rows.front().cell;
  const auto silent = std::ranges::find(rows, "silent", label_of);
  const Row* best = best_of(rows);
  const Row* baseline = cell.part == "logging" ? (silent == rows.end() ? nullptr : &*silent) : best;
  const double scale = published_scale(rows);
  Section section{.title = title_of(cell)};
  if (std::string text = comparison_text(rows); !text.empty()) section.paragraphs.push_back(std::move(text));
  if (cell.part == "logging")
    section.paragraphs.emplace_back("The original lost 24 to 42 % of its batches to verbose logging.");
  section.caption = "A bar is the median of the rounds, the thin line spans them.";
  if (std::isfinite(scale)) {
    section.caption +=
        " The upright marks are what the original published, scaled so that direct-tensor is the same: "
        "compare the pattern, not the height.";
  }
  section.table = {{"", "batches/30 s", "rounds", cell.part == "logging" ? "of silent" : "of the best", "net",
                    "ratio", "compute s", "compress s", "network s", "memory", "each node", "spread",
                    "loss"}};
  for (const Row& row : rows) {
    const auto [low, high] = round_range(row);
    section.bars.push_back({.label = label_of(row),
                            .value = row.figures.batches,
                            .text = count_text(row.figures.batches),
                            .low = low,
                            .high = high,
                            .marker = published(label_of(row)).batches * scale,
                            .best = &row == best});
    section.table.push_back(line_of(row, baseline));
  }
  return section;
}

Section forecast_section(const BenchReport& report) {
  Section section{
      .title = "Predicted by w5xde plan",
      .paragraphs = {"Just before each of these pools ran, w5xde plan predicted it. It measures how long a "
                     "slot takes at that time and, where steps are short, how long an exchange takes in a "
                     "small pool. Ratios are medians of the ratios of single rounds. " +
                     forecast_text(report)},
      .caption = "The upright marks are what was measured; darker bars are within 25 % of it.",
      .table = {
          {"", "predicted batches/30 s", "measured batches/30 s", "ratio", "within 25 %", "bottleneck"}}};
  for (const Forecast& forecast : report.forecasts) {
    const ForecastVerdict verdict = report.verdict(forecast);
    const std::string name = name_of(forecast.cell);
    section.bars.push_back({.label = name,
                            .value = verdict.ratio,
                            .text = decimal_text(verdict.ratio),
                            .marker = verdict.known() ? 1 : kUnknown,
                            .best = verdict.close()});
    section.table.push_back({name, count_text(median(forecast.batches)), count_text(verdict.measured),
                             decimal_text(verdict.ratio),
                             !verdict.known()  ? "–"
                             : verdict.close() ? "yes"
                                               : "no",
                             forecast.bottleneck});
  }
  return section;
}

Section published_section() {
  Section section{.title = "What the original published",
                  .paragraphs = {"The original WIIIIIDE: 10 nodes on one machine, 30 s, measured on another "
                                 "machine. Compare the pattern."},
                  .table = {{"preset", "batches/30 s", "net", "ratio"}}};
  for (const Published& original : kPublished) {
    section.table.push_back({std::string(original.preset), count_text(original.batches),
                             rate_text(original.bytes_per_second), decimal_text(original.ratio)});
  }
  return section;
}

// "12 s (2M 100mbit), 1 s (original loopback, 2M loopback)"
std::string warm_up_list(const std::vector<Row>& rows) {
  std::map<double, std::vector<std::string>, std::greater<>> groups;  // by length, the longest first
  for (const Row& row : rows) {
    const std::string group = fmt::format("{} {}", row.cell.workload, row.cell.link);
    auto& named = groups[row.warm_up_seconds];
    if (std::ranges::find(named, group) == named.end()) named.push_back(group);
  }
  std::vector<std::string> parts;
  for (const auto& [seconds, named] : groups) {
    parts.push_back(fmt::format("{:g} s ({})", seconds, fmt::join(named, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

Section method_section(const BenchReport& report) {
  const Conditions& c = report.conditions;
  const auto size = [](std::uint64_t bytes) { return size_text(static_cast<double>(bytes)); };
  return {
      .title = "How it was measured",
      .paragraphs = {
          fmt::format("{}, w5xde {}, {}, {} cores, {}.", c.date, c.version, c.processor, c.cores, c.kernel),
          fmt::format("Pools of {} nodes, batch 32, sync. Each row was measured for {} s in {} round{}. Rows "
                      "of one table take turns, and each round begins with another row.",
                      c.nodes, decimal_text(c.seconds, c.seconds < 10 ? 1 : 0), c.rounds,
                      c.rounds == 1 ? "" : "s"),
          fmt::format("Batches are counted after a warm-up: {}. All other figures are of the whole run, per "
                      "30 s. Times are of the mean node; network includes waiting for work and for a turn "
                      "on the machine's cores. \"each node\" is the batches of the idlest and of the "
                      "busiest node, and the spread is how many more the busiest did.",
                      warm_up_list(report.rows)),
          fmt::format("The kernel grants socket buffers of up to {} to receive and {} to send "
                      "(net.core.rmem_max, wmem_max).",
                      size(c.receive_buffer_bytes_max), size(c.send_buffer_bytes_max)),
          c.link.empty() ? "100 Mbit/s was not measured."
                         : "100 Mbit/s: " + c.link +
                               ". Memory is the coordinator's alone there; on loopback it is the whole "
                               "pool's."}};
}

}  // namespace

std::string comparison_text(const std::vector<Row>& rows) {
  std::vector<Row> known;
  std::ranges::copy_if(rows, std::back_inserter(known),
                       [](const Row& row) { return std::isfinite(row.figures.batches); });
  if (known.size() < 2) return "";
  const Row& best = *best_of(known);
  const Row& last = *std::ranges::min_element(known, {}, [](const Row& row) { return row.figures.batches; });
  std::string text = fmt::format("Most batches in 30 s: {}, {}. Fewest: {}, {} ({} times as many).",
                                 label_of(best), count_text(best.figures.batches), label_of(last),
                                 count_text(last.figures.batches), decimal_text(ratio(last, best)));
  const double noise = noise_of(known);
  if (!std::isfinite(noise)) return text + " There was one round, so the noise is not known.";
  text += fmt::format(" Rounds of one row differ by up to {}", percent_text(noise));
  std::vector<std::string> level;
  for (const Row& row : known) {
    if (&row != &best && ratio(row, best) >= 1 - noise) level.push_back(label_of(row));
  }
  if (level.empty()) return text + "; the best leads by more than that.";
  if (level.size() + 1 == known.size()) return text + ", so none is clearly the best.";
  return text + fmt::format(", so {} may be as fast as the best.", list_of(level));
}

std::string forecast_text(const BenchReport& report) {
  std::size_t known = 0, close = 0;
  const Forecast* farthest = nullptr;
  double farthest_ratio = 1;
  for (const Forecast& forecast : report.forecasts) {
    const ForecastVerdict verdict = report.verdict(forecast);
    if (!verdict.known()) continue;
    ++known;
    if (verdict.close()) ++close;
    if (std::abs(verdict.ratio - 1) <= std::abs(farthest_ratio - 1)) continue;
    farthest = &forecast;
    farthest_ratio = verdict.ratio;
  }
  if (known == 0) return "";
  std::string text = fmt::format("{} of {} predictions are within {} of what was measured", close, known,
                                 percent_text(kForecastTolerance));
  if (!farthest) return text + ".";
  return text + fmt::format("; the farthest off is {}, {} times what was measured.", name_of(farthest->cell),
                            decimal_text(farthest_ratio));
}

std::vector<Section> sections_of(const BenchReport& report) {
  std::vector<Section> sections;
  for (auto first = report.rows.begin(); first != report.rows.end();) {
    const auto end = std::find_if_not(first, report.rows.end(),
                                      [&](const Row& row) { return compared(row.cell, first->cell); });
    sections.push_back(study_section({first, end}));
    first = end;
  }
  if (!report.forecasts.empty()) sections.push_back(forecast_section(report));
  sections.push_back(published_section());
  sections.push_back(method_section(report));
  return sections;
}

std::vector<std::string> warnings_of(const BenchReport& report) {
  std::vector<std::string> warnings;
  if (!report.conditions.complete) {
    warnings.emplace_back("Stopped before the last round: only what was measured until then is here.");
  }
  for (const Forecast& forecast : report.forecasts) {
    if (forecast.problem.empty()) continue;
    warnings.push_back(fmt::format("No prediction for {}: {}", name_of(forecast.cell), forecast.problem));
  }
  for (const Row& row : report.rows) {
    if (row.cold_rounds > 0) {
      warnings.push_back(fmt::format(
          "{}: in {} of {} rounds too few steps were recorded after the warm-up; there, batches are counted "
          "over the whole run.",
          name_of(row.cell), row.cold_rounds, row.rounds_batches.size()));
    }
    if (row.problem.empty()) continue;
    warnings.push_back(fmt::format("No figures in a round of {}: {}", name_of(row.cell), row.problem));
  }
  return warnings;
}

}  // namespace w5xde
