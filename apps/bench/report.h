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

// Counts and times are given per this many seconds, as the original WIIIIIDE published them, however long
// was measured.
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

// One pool, or the medians of several: batches once it was warm, all else of the whole run. Unknown is NaN.
struct Figures {
  double batches = kUnknown;  // in 30 s
  double bytes_per_second = kUnknown;
  double network_seconds = kUnknown;  // of 30, and of the mean node: waiting for bytes or for a turn
  double compression_seconds = kUnknown;
  double compute_seconds = kUnknown;
  double compression_ratio = kUnknown;
  double memory_bytes = kUnknown;
  double node_batches_min = kUnknown;  // in 30 s
  double node_batches_max = kUnknown;
  double node_spread = kUnknown;  // by how much the busiest node did more than the idlest, of the idlest
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

// What one row of the report is about.
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
  std::vector<double> rounds_batches;  // in 30 s, round by round; NaN where the pool did not run to its end
  std::uint64_t cold_rounds = 0;       // whose batches are the whole run's: too few steps after the warm-up
  std::string problem;                 // why a round has no figures; empty: all have
};

// What `w5xde plan` said of a cell, in each of its rounds anew.
struct Forecast {
  struct Said {
    double batches = kUnknown;       // in 30 s
    double slot_seconds = kUnknown;  // as it was measured just before
  };
  Cell cell;
  std::vector<Said> rounds;  // one by one
  std::string bottleneck;    // as of the last
  std::string problem;       // why a round has no forecast; empty: all have

  // Medians.
  double batches() const;
  double slot_seconds() const;
};
// How far from what was measured a forecast may be, of that.
inline constexpr double kForecastTolerance = 0.25;

// A forecast beside what came of it.
struct ForecastVerdict {
  double measured = kUnknown;  // batches in 30 s
  // Of what was predicted to what was measured: the median of the rounds' own, or it would tell how the
  // machine's speed moves.
  double ratio = kUnknown;

  bool known() const { return std::isfinite(ratio); }
  bool close() const { return std::abs(ratio - 1) <= kForecastTolerance; }
};

// The median of the rounds' own ratios of batches: what slows the machine down for a while slows both.
double ratio(const Row& row, const Row& baseline);
// By how much the rounds of a row lie apart, of their median.
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

  // One part's rows of one workload and link, in order.
  std::vector<Row> group(std::string_view part, std::string_view workload, std::string_view link) const;
  // One more round of a cell's forecast.
  void add(const Forecast& round);
  ForecastVerdict verdict(const Forecast& forecast) const;
};

std::string to_json(const BenchReport& report);  // indented, ends with a newline
// corrupt when the text is not what to_json writes.
Result<BenchReport> bench_report_from_json(std::string_view text);

// For a terminal: one line a row, the original's columns beside ours where it measured the same.
std::string to_text(const BenchReport& report);

// A page that needs nothing but itself.
std::string report_html(const BenchReport& report);

}  // namespace w5xde
