#include "bench/report.h"

#include <algorithm>
#include <cmath>

namespace w5xde {

namespace {

double mean_of_nodes(const Summary& summary, double NodeSummary::*value) {
  double sum = 0;
  for (const NodeSummary& node : summary.per_node) sum += node.*value;
  return sum / static_cast<double>(summary.per_node.size());
}

double batches_per_second(const Summary& summary, const std::optional<RunDatabase::Stretch>& warm) {
  const auto batches = static_cast<double>(summary.batches);
  if (!warm || summary.steps == 0) return batches / summary.seconds;
  const double batches_a_step = batches / static_cast<double>(summary.steps);
  return batches_a_step * static_cast<double>(warm->steps) / warm->seconds;
}

double median_ratio(const std::vector<double>& rounds, const std::vector<double>& baseline) {
  std::vector<double> ratios(std::min(rounds.size(), baseline.size()));
  std::transform(rounds.begin(), rounds.begin() + std::ssize(ratios), baseline.begin(), ratios.begin(),
                 std::divides<>());
  return median(std::move(ratios));
}

}  // namespace

Published published(std::string_view preset) {
  const auto* found = std::ranges::find(kPublished, preset, &Published::preset);
  return found == kPublished.end() ? Published{.preset = preset} : *found;
}

double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) return kUnknown;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Figures figures_of(const Summary& summary, const std::optional<RunDatabase::Stretch>& warm) {
  if (!(summary.seconds > 0) || summary.per_node.empty()) return {};
  const double scale = kPublishedSeconds / summary.seconds;
  const auto [idlest, busiest] = std::ranges::minmax(summary.per_node, {}, &NodeSummary::batches);
  const auto least = static_cast<double>(idlest.batches), most = static_cast<double>(busiest.batches);
  return {.batches = batches_per_second(summary, warm) * kPublishedSeconds,
          .bytes_per_second = summary.throughput_bytes_per_second,
          .network_seconds = mean_of_nodes(summary, &NodeSummary::network_seconds) * scale,
          .compression_seconds = mean_of_nodes(summary, &NodeSummary::compression_seconds) * scale,
          .compute_seconds = mean_of_nodes(summary, &NodeSummary::compute_seconds) * scale,
          .compression_ratio = summary.compression_ratio,
          .memory_bytes = static_cast<double>(summary.memory_bytes),
          .node_batches_min = least * scale,
          .node_batches_max = most * scale,
          .node_spread = least > 0 ? most / least - 1 : kUnknown,
          .loss_first = summary.loss.first,
          .loss_last = summary.loss.last};
}

Figures median_of(std::span<const Figures> rounds) {
  Figures medians;
  for (const Column& column : kColumns) {
    std::vector<double> values;
    for (const Figures& round : rounds) values.push_back(round.*column.value);
    medians.*column.value = median(std::move(values));
  }
  return medians;
}

double ratio(const Row& row, const Row& baseline) {
  return median_ratio(row.rounds_batches, baseline.rounds_batches);
}

double round_spread(const Row& row) {
  std::vector<double> known = row.rounds_batches;
  std::erase_if(known, [](double value) { return !std::isfinite(value); });
  if (known.size() < 2) return kUnknown;
  const auto [least, most] = std::ranges::minmax(known);
  const double spread = (most - least) / median(known);
  return std::isfinite(spread) ? spread : kUnknown;
}

const Row* best_of(std::span<const Row> rows) {
  const Row* best = nullptr;
  for (const Row& row : rows) {
    if (!std::isfinite(row.figures.batches)) continue;
    if (!best || row.figures.batches > best->figures.batches) best = &row;
  }
  return best;
}

ForecastVerdict BenchReport::verdict(const Forecast& forecast) const {
  const auto row = std::ranges::find(rows, forecast.cell, &Row::cell);
  if (row == rows.end() || !(row->figures.batches > 0)) return {};
  return {row->figures.batches, median_ratio(forecast.batches, row->rounds_batches)};
}

}  // namespace w5xde
