#include "harness.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>

#include "base/bytes.h"
#include "base/file.h"

namespace w5xde::bench {

Result<std::optional<Options>> parse_options(int argc, char** argv, const std::string& about) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--help" || flag == "-h") {
      fmt::print(
          "{}\n\n"
          "  --json PATH    write the results there too\n"
          "  --only GROUP   run only the groups whose name contains GROUP\n"
          "  --rounds N     how often each measurement and its baseline take turns (5 or more; default {})\n",
          about, options.rounds);
      return std::optional<Options>();
    }
    if (i + 1 == argc) return invalid(fmt::format("'{}' is not a flag with a value; see --help", flag));
    const std::string_view value = argv[++i];
    if (flag == "--json") {
      options.json_path = value;
    } else if (flag == "--only") {
      options.only = value;
    } else if (flag == "--rounds") {
      const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.rounds);
      if (error != std::errc() || end != value.data() + value.size() || options.rounds < 5) {
        return invalid(fmt::format("--rounds takes a number from 5 up, not '{}'", value));
      }
    } else {
      return invalid(fmt::format("'{}' is not a flag; see --help", flag));
    }
  }
  return std::optional(options);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Compared interleave(int rounds, const std::function<double()>& ours,
                    const std::function<double()>& baseline) {
  std::vector<double> our_values, baseline_values, ratios;
  // One round to warm up. After it the two swap places each round: whoever runs second finds a warmer
  // machine.
  for (int round = -1; round < rounds; ++round) {
    const bool ours_first = round % 2 == 0;
    const double first = ours_first ? ours() : baseline();
    const double second = ours_first ? baseline() : ours();
    if (round < 0) continue;
    our_values.push_back(ours_first ? first : second);
    baseline_values.push_back(ours_first ? second : first);
    ratios.push_back(our_values.back() / baseline_values.back());
  }
  return {median(our_values), median(baseline_values), median(ratios)};
}

void stay_on_core(unsigned core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core % std::max(1u, std::thread::hardware_concurrency()), &cores);
  // Not allowed to: then the scheduler decides, for both.
  (void)::pthread_setaffinity_np(::pthread_self(), sizeof cores, &cores);
}

double seconds_for(const std::function<void()>& work) {
  const SteadyClock clock;
  const Instant start = clock.now();
  work();
  return seconds_of(clock.now() - start);
}

void Report::heading(const std::string& text) {
  fmt::print("\n{:<58} {:>12} {:<8} {:>12} {:>8}\n", text, "value", "unit", "baseline", "ratio");
  std::fflush(stdout);
}

void Report::add(Row row) {
  const auto number = [](std::optional<double> value) {
    return value ? fmt::format("{:.4g}", *value) : std::string();
  };
  fmt::print("{:<58} {:>12.6g} {:<8} {:>12} {:>8}\n", row.name, row.value, row.unit, number(row.baseline),
             row.ratio ? fmt::format("{:.3f}", *row.ratio) : std::string());
  std::fflush(stdout);
  rows_.push_back(std::move(row));
}

void Report::add(const std::string& name, const std::string& unit, const Compared& compared) {
  add({name, compared.ours, unit, compared.baseline, compared.ratio});
}

Status Report::write_json(const std::string& path) const {
  auto results = nlohmann::json::array();
  for (const Row& row : rows_) {
    nlohmann::json entry = {{"name", row.name}, {"value", row.value}, {"unit", row.unit}};
    entry["baseline"] = row.baseline ? nlohmann::json(*row.baseline) : nlohmann::json();
    entry["ratio"] = row.ratio ? nlohmann::json(*row.ratio) : nlohmann::json();
    results.push_back(std::move(entry));
  }
  const std::string text = nlohmann::json{{"results", std::move(results)}}.dump(2) + "\n";
  const std::array<Bytes, 1> parts = {bytes_of(text)};
  return write_file_atomically(path, parts);
}

}  // namespace w5xde::bench
