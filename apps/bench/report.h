// What `w5xde bench original` measures, and the three forms of its report: a table, JSON, a page.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "record/run_database.h"
#include "record/summary.h"
#include "w5xde/result.h"

namespace w5xde {

// Counts and times are given per this many seconds, because the original WIIIIIDE published them so.
inline constexpr double kPublishedSeconds = 30;

// What the original WIIIIIDE published of a preset, measured on another machine.
struct Published {
  std::string_view preset;
  double batches = kUnknown;  // in 30 s
  double bytes_per_second = kUnknown;
  double ratio = kUnknown;
};
inline constexpr std::array<Published, 7> kPublished = {{
    {"early", 2733, 326e3, kUnknown},
    {"standard", 13764, 1.67e6, 1.88},
    {"current", 17151, 2.90e6, 1.35},
    {"enhanced", 17244, 2.93e6, 1.34},
    {"lz4-block", 17305, 3.02e6, 1.30},
    {"direct-tensor", 24373, 4.11e6, 1.24},
    {"gradient-compression", 10339, 835e3, 2.02},
}};
// All unknown for a preset that the original did not have.
Published published(std::string_view preset);

// Of one pool, or the medians of several: batches after the warm-up, all else of the whole run. Unknown is
// NaN.
struct Figures {
  double batches = kUnknown;  // in 30 s
  double bytes_per_second = kUnknown;
  double network_seconds = kUnknown;  // of 30, of the mean node: waiting for bytes or for a turn
  double compression_seconds = kUnknown;
  double compute_seconds = kUnknown;
  double compression_ratio = kUnknown;
  double memory_bytes = kUnknown;
  double node_batches_min = kUnknown;  // in 30 s
  double node_batches_max = kUnknown;
  double node_spread = kUnknown;  // how many more the busiest node did than the idlest, as a share
  double loss_first = kUnknown;
  double loss_last = kUnknown;
};

// The columns by the name that report.json has for them.
struct Column {
  const char* name;
  double Figures::*value;
};
inline constexpr std::array<Column, 12> kColumns = {{
    {"batches_per_30s", &Figures::batches},
    {"throughput_bytes_per_second", &Figures::bytes_per_second},
    {"network_seconds_per_30s", &Figures::network_seconds},
    {"compression_seconds_per_30s", &Figures::compression_seconds},
    {"compute_seconds_per_30s", &Figures::compute_seconds},
    {"compression_ratio", &Figures::compression_ratio},
    {"memory_bytes", &Figures::memory_bytes},
    {"node_batches_min", &Figures::node_batches_min},
    {"node_batches_max", &Figures::node_batches_max},
    {"node_spread", &Figures::node_spread},
    {"loss_first", &Figures::loss_first},
    {"loss_last", &Figures::loss_last},
}};

// `warm` is what the run did after warming up; without it, batches are the whole run's too.
Figures figures_of(const Summary& summary, const std::optional<RunDatabase::Stretch>& warm);
// Column by column, over those that are known.
Figures median_of(std::span<const Figures> rounds);
// NaN when there is none.
double median(std::vector<double> values);

// What one row of the report measures.
struct Cell {
  std::string part;  // "presets", "buffers", "logging"
  std::string preset;
  std::string workload;
  std::string link;
  std::uint64_t socket_buffer_bytes = 0;  // 0: as the preset has it
  std::string log = "silent";

  bool operator==(const Cell&) const = default;
};

struct Row {
  Cell cell;
  double warm_up_seconds = 0;          // of each round, before its batches count
  Figures figures;                     // medians
  std::vector<double> rounds_batches;  // in 30 s, round by round; NaN where the pool failed
  std::uint64_t cold_rounds = 0;       // too few steps after the warm-up: their batches are the whole run's
  std::string problem;                 // why a round has no figures; empty: all have
};

// What `w5xde plan` predicted for a cell, before each of its rounds. NaN where it failed.
struct Forecast {
  Cell cell;
  std::vector<double> batches;       // in 30 s, round by round
  std::vector<double> slot_seconds;  // as plan measured them, round by round
  std::string bottleneck;            // of the last round
  std::string problem;               // why a round has no forecast; empty: all have
};
// How far from what was measured a forecast may be, of that.
inline constexpr double kForecastTolerance = 0.25;

// A forecast beside what came of it.
struct ForecastVerdict {
  double measured = kUnknown;  // batches in 30 s
  // Predicted to measured: the median of the ratios of single rounds, because the machine's speed changes.
  double ratio = kUnknown;

  bool known() const { return std::isfinite(ratio); }
  bool close() const { return std::abs(ratio - 1) <= kForecastTolerance; }
};

// Of batches: the median of the ratios of single rounds. What slows the machine for a while slows both.
double ratio(const Row& row, const Row& baseline);
// How far the rounds of a row are apart, as a share of their median. NaN for fewer than two.
double round_spread(const Row& row);
// Of those with figures, the row with the most batches; none: nullptr.
const Row* best_of(std::span<const Row> rows);

struct Conditions {
  std::string date;
  std::string version;
  std::string processor;
  std::string kernel;
  std::uint64_t cores = 0;
  std::uint64_t receive_buffer_bytes_max = 0;  // what the kernel grants at most
  std::uint64_t send_buffer_bytes_max = 0;
  std::uint64_t nodes = 0;
  std::uint64_t rounds = 0;
  double seconds = 0;    // a row's, all rounds together, after warming up
  std::string link;      // how the slow link was made; empty: none was
  bool complete = true;  // false: stopped before the last round
};

struct BenchReport {
  Conditions conditions;
  std::vector<Row> rows;  // of all parts, in the order of measuring
  std::vector<Forecast> forecasts;

  ForecastVerdict verdict(const Forecast& forecast) const;
};

std::string to_json(const BenchReport& report);  // indented, ends with a newline
std::string to_text(const BenchReport& report);  // for a terminal
std::string to_html(const BenchReport& report);  // a page that needs nothing but itself

}  // namespace w5xde
