#include "bench/report_sentences.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/studies.h"
#include "figure_text.h"

namespace w5xde {

namespace {

std::vector<Row> with(const std::vector<Row>& rows, double Figures::*value) {
  std::vector<Row> known;
  std::ranges::copy_if(rows, std::back_inserter(known),
                       [&](const Row& row) { return std::isfinite(row.figures.*value); });
  return known;
}

// "a", "a and b", "a, b and c"
std::string list_of(const std::vector<std::string>& names) {
  if (names.size() < 2) return names.empty() ? "" : names.front();
  const std::vector<std::string> first(names.begin(), names.end() - 1);
  return fmt::format("{} and {}", fmt::join(first, ", "), names.back());
}

std::string preset_name(const Row& row) {
  return row.cell.preset;
}

std::string size_name(const Row& row) {
  return fmt::format("{} MB", row.cell.socket_buffer_bytes >> 20);
}

std::string seconds_text(double seconds) {
  return decimal_text(seconds, seconds == std::floor(seconds) ? 0 : 1) + " s";
}

// Who did most and least, and whether that is more than what a row's own rounds lie apart.
std::string comparison(const std::vector<Row>& rows, std::string (*name)(const Row&)) {
  const auto known = with(rows, &Figures::batches);
  if (known.size() < 2) return "";
  const Row& best = *best_of(known);
  const Row& last = *std::ranges::min_element(known, {}, [](const Row& row) { return row.figures.batches; });
  std::string text = fmt::format("Most batches: {}, {} in 30 s. Fewest: {}, {} ({} of it).", name(best),
                                 count_text(best.figures.batches), name(last),
                                 count_text(last.figures.batches), decimal_text(ratio(last, best)));
  const double noise = noise_of(known);
  if (!std::isfinite(noise)) return text + " There was one round: nothing tells how far it would vary.";
  text += fmt::format(" Rounds of the same lie up to {} apart", percent_text(noise));
  std::vector<std::string> level;
  for (const Row& row : known) {
    if (&row != &best && ratio(row, best) >= 1 - noise) level.push_back(name(row));
  }
  if (level.empty()) return text + "; the lead is larger than that.";
  if (level.size() + 1 == known.size()) return text + ", so none stands out.";
  return text + fmt::format(": by that measure {} {} level with the best.", list_of(level),
                            level.size() == 1 ? "is" : "are");
}

}  // namespace

double noise_of(const std::vector<Row>& rows) {
  double widest = kUnknown;
  for (const Row& row : rows) widest = std::fmax(widest, round_spread(row));
  return widest;
}

std::string comparison_sentences(const std::vector<Row>& rows) {
  return comparison(rows, preset_name);
}

std::string time_sentence(const std::vector<Row>& rows) {
  const auto known = with(rows, &Figures::compression_seconds);
  if (known.empty()) return "";
  const auto cost = [](const Row& row) { return row.figures.compression_seconds; };
  const Row& most = *std::ranges::max_element(known, {}, cost);
  if (!(cost(most) >= 0.005)) return "No preset spent time on compression that could be measured.";
  return fmt::format("{} spent the most time compressing: {} s of 30 on the mean node.", most.cell.preset,
                     decimal_text(cost(most)));
}

std::string spread_sentence(const std::vector<Row>& rows) {
  const auto known = with(rows, &Figures::node_spread);
  if (known.empty()) return "";
  const auto spread = [](const Row& row) { return row.figures.node_spread; };
  const auto [least, most] = std::ranges::minmax(known, {}, spread);
  if (known.size() == 1) {
    return fmt::format("The busiest node did {} more than the idlest.", percent_text(spread(least)));
  }
  return fmt::format("The busiest node did {} ({}) to {} ({}) more than the idlest.",
                     percent_text(spread(least)), least.cell.preset, percent_text(spread(most)),
                     most.cell.preset);
}

std::string loss_sentence(const std::vector<Row>& rows) {
  std::vector<std::string> rose;
  std::size_t known = 0;
  for (const Row& row : rows) {
    if (!std::isfinite(row.figures.loss_first) || !std::isfinite(row.figures.loss_last)) continue;
    ++known;
    if (!(row.figures.loss_last < row.figures.loss_first)) rose.push_back(row.cell.preset);
  }
  if (known == 0) return "";
  if (rose.empty()) return "The loss fell with every preset.";
  return fmt::format("The loss did not fall with {}.", list_of(rose));
}

std::string warm_up_sentence(const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  return fmt::format("Batches in 30 s are counted after {} of warming up; all else is of the whole run.",
                     seconds_text(rows.front().warm_up_seconds));
}

std::string warm_up_list(const std::vector<Row>& rows) {
  std::map<double, std::vector<std::string>, std::greater<>> groups;  // by length, the longest first
  for (const Row& row : rows) {
    const std::string group = fmt::format("{} {}", row.cell.workload, row.cell.link);
    auto& named = groups[row.warm_up_seconds];
    if (std::ranges::find(named, group) == named.end()) named.push_back(group);
  }
  std::vector<std::string> parts;
  for (const auto& [seconds, named] : groups) {
    parts.push_back(fmt::format("{} ({})", seconds_text(seconds), fmt::join(named, ", ")));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string cold_sentence(const Row& row) {
  if (row.cold_rounds == 0) return "";
  return fmt::format(
      "{}: in {} of {} rounds too few steps were recorded after warming up; there, batches are of the whole "
      "run.",
      name_of(row.cell), row.cold_rounds, row.rounds_batches.size());
}

std::string yes_or_no(const ForecastVerdict& verdict) {
  if (!verdict.known()) return "–";
  return verdict.close() ? "yes" : "no";
}

std::string forecast_sentence(const BenchReport& report) {
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
  return text + fmt::format("; the farthest, {}, said {} times as much.", name_of(farthest->cell),
                            decimal_text(farthest_ratio));
}

std::string buffers_sentence(const std::vector<Row>& rows, const Conditions& conditions) {
  std::string text = comparison(rows, size_name);
  if (text.empty()) return "";
  const auto granted = std::min(conditions.receive_buffer_bytes_max, conditions.send_buffer_bytes_max);
  const bool beyond = std::ranges::any_of(
      rows, [&](const Row& row) { return granted > 0 && row.cell.socket_buffer_bytes > granted; });
  if (beyond) {
    text += fmt::format(" The kernel's own limit (net.core.rmem_max, wmem_max) is {}.",
                        size_text(static_cast<double>(granted)));
  }
  return text;
}

std::string logging_sentence(const std::vector<Row>& rows) {
  const auto named = [&](const char* log) {
    return std::ranges::find(rows, log, [](const Row& row) { return row.cell.log; });
  };
  const auto silent = named("silent"), verbose = named("verbose");
  if (silent == rows.end() || verbose == rows.end()) return "";
  const double left = ratio(*verbose, *silent);
  if (!std::isfinite(left)) return "";
  std::string text = left < 1 ? fmt::format("Verbose logging cost {} of the batches", percent_text(1 - left))
                              : fmt::format("Verbose logging cost no batches ({} times the silent pool's)",
                                            decimal_text(left));
  text += "; the original reported 24 to 42 %.";
  const double noise = noise_of(rows);
  if (std::isfinite(noise))
    text += fmt::format(" Rounds of one tier lie up to {} apart.", percent_text(noise));
  return text;
}

}  // namespace w5xde
