// The end-of-run summary: printed, and as JSON in RUN/summary.json and --json.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/batch_growth.h"
#include "w5xde/result.h"

namespace w5xde {

// A double that is not known is NaN: null in JSON, "-" on a terminal.
inline constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// Of Summary::outcome.
inline constexpr const char* kFinished = "finished";
inline constexpr const char* kStopped = "stopped";

struct LossStats {
  double first = kUnknown;
  double last = kUnknown;
  double mean = kUnknown;
};

struct EvaluationStats {
  double loss = kUnknown;
  double accuracy = kUnknown;  // 0 to 1
};

// A run that goes on from a checkpoint. Of traffic, speed, memory and nodes the summary knows only what came
// after that.
struct ResumeStats {
  std::uint64_t step = 0;
  double seconds = 0;  // of training, since then
};

// The checkpoint with the lowest evaluation loss.
struct BestStats {
  std::uint64_t step = 0;
  double loss = kUnknown;
};

struct TrafficStats {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

// Whether every sample was committed exactly once: each slot was, and brought as many samples as it has.
struct AuditStats {
  std::uint64_t samples_expected = 0;  // of all slots up to the last that is committed
  std::uint64_t samples_committed = 0;
  std::uint64_t slots_missing = 0;  // before the last that is committed
  std::uint64_t slots_twice = 0;    // committed when they already were
  std::uint64_t slots_leased_again = 0;
  std::uint64_t duplicates_dropped = 0;
  std::uint64_t feedback_lost = 0;  // nodes that took with them what their codec had still to say

  bool passed() const {
    return samples_committed == samples_expected && slots_missing == 0 && slots_twice == 0;
  }
};

// What the engine made of slots of one size, measured before a run began.
struct BatchTrial {
  std::uint64_t batch = 0;  // samples a slot
  double samples_per_second = 0;

  bool operator==(const BatchTrial&) const = default;
};

// Of a run whose global batch grows.
struct GrowthStats {
  double noise_scale = kUnknown;  // samples, at the end
  std::vector<BatchGrowth> growths;
};

struct NodeSummary {
  std::string name;
  std::uint64_t batches = 0;
  LossStats loss;
  std::uint64_t bytes_sent = 0;
  std::uint64_t bytes_received = 0;
  double throughput_bytes_per_second = 0;
  double compression_ratio = kUnknown;  // bytes before / bytes after
  double network_seconds = 0;           // without a lease that it could compute: the network, or others
  double compression_seconds = 0;
  double compute_seconds = 0;
  std::uint64_t lanes = 1;          // slots that it computed at once, at most
  double loop_longest_seconds = 0;  // that something took on its loop, where everything else waits for it
  std::string standing;             // at the end, or when it left: working, standby, …
  std::string reason;               // for its standing; empty where it worked
  std::string codec_up;             // how its contributions travel
  std::string codec_down;           // how parameters travel to it
};

struct Summary {
  std::string mode;
  std::string preset;
  std::string outcome;  // "finished", "stopped", or why it failed
  std::uint64_t nodes = 0;
  double seconds = 0;
  std::optional<ResumeStats> resumed;  // the last time; none where it never was
  std::uint64_t steps = 0;
  std::uint64_t batches = 0;
  double batches_per_second = 0;
  std::uint64_t samples = 0;
  double epochs = 0;
  std::uint64_t batch = 0;               // samples a slot
  std::uint64_t global_batch = 0;        // samples a step, at the end
  std::uint64_t working = 0;             // nodes that worked in a step, at the end; 0: all
  std::vector<BatchTrial> batch_trials;  // none where `batch` was given
  std::optional<GrowthStats> batch_growth;
  LossStats loss;
  std::optional<EvaluationStats> evaluation;
  std::optional<BestStats> best;  // none where nothing was evaluated
  TrafficStats bytes;
  double throughput_bytes_per_second = 0;
  double compression_ratio = kUnknown;
  std::uint64_t memory_bytes = 0;
  double loop_longest_seconds = 0;  // the coordinator's, as NodeSummary's
  std::string parameters_hash;
  AuditStats audit;
  std::vector<NodeSummary> per_node;
};

std::string to_json(const Summary& summary);  // indented, ends with a newline
std::string to_text(const Summary& summary);  // for a terminal of 100 columns, ends with a newline

// corrupt when the text is not what to_json writes; keys it does not know are left alone.
Result<Summary> summary_from_json(std::string_view text);

}  // namespace w5xde
