// What every bench shares: baselines interleaved with what is measured, medians over rounds, a table and a
// JSON file.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "w5xde/result.h"

namespace w5xde::bench {

struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> baseline;  // in the same unit
  std::optional<double> ratio;     // value / baseline, the median over rounds
};

struct Options {
  std::string json_path;  // empty: none
  std::string only;       // run the groups whose name contains this
  int rounds = 7;
};

// Reads --json PATH, --only GROUP, --rounds N, --help. `about` is what --help says first.
Result<std::optional<Options>> parse_options(int argc, char** argv, const std::string& about);

// The shared machine is noisy: the two take turns, and the ratio is the median of the rounds' own ratios, so
// that what slows the whole machine down for a second slows both.
struct Compared {
  double ours = 0;
  double baseline = 0;
  double ratio = 0;
};
Compared interleave(int rounds, const std::function<double()>& ours, const std::function<double()>& baseline);

double median(std::vector<double> values);

// Keeps the calling thread on one core (counted round), here and in the baseline alike: whether the scheduler
// puts two threads that wake each other on one core or on two changes a round trip by a factor of two, and
// has nothing to do with what is measured.
void stay_on_core(unsigned core);

// Seconds that a call takes.
double seconds_for(const std::function<void()>& work);

class Report {
 public:
  void add(Row row);  // prints it, so that a long bench shows progress
  void add(const std::string& name, const std::string& unit, const Compared& compared);
  void heading(const std::string& text);
  Status write_json(const std::string& path) const;

 private:
  std::vector<Row> rows_;
};

}  // namespace w5xde::bench
