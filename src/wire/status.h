#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/limits.h"
#include "w5xde/result.h"
#include "wire/messages.h"

namespace w5xde {

// How a run is doing, for an observer: who is in, how fast, why someone was dropped.
struct StatusReport {
  struct Node {
    std::string name;
    std::string peer;
    std::string engine;
    std::uint64_t batches = 0;
    double batches_per_second = 0;  // while it computes
    std::uint64_t lanes = 1;        // slots that it computes at once, at most
    double round_trip_ms = 0;
    std::string standing;  // working, standby, catching up, late, leaving
    std::string reason;    // for its standing; empty where it works
    std::string codec_up, codec_down;
    bool operator==(const Node&) const = default;
  };
  struct Departure {
    std::string name;
    double seconds = 0;  // into the run
    std::string reason;
    std::uint64_t batches = 0;  // that it computed
    bool operator==(const Departure&) const = default;
  };

  std::string run;
  std::string mode;
  // Of a coordinator: "waiting for nodes", "training", "evaluating", "retrying a checkpoint", "finishing". Of
  // a folder that no coordinator has: "finished", "stopped", "failed", "killed", "not begun".
  std::string phase;
  double age_seconds = 0;  // of these figures, where they were recorded; 0: asked now
  std::uint64_t step = 0;
  std::uint64_t steps_total = 0;  // 0: no end in steps
  std::uint64_t batches = 0;
  std::uint64_t batch = 0;         // samples a slot
  std::uint64_t global_batch = 0;  // samples a step
  double noise_scale = 0;          // of gradients, in samples; 0: not known
  std::uint64_t working = 0;       // nodes that work in a step; 0: all
  double epochs = 0;
  double seconds = 0;
  std::optional<double> loss;  // of the last step; none before the first
  double batches_per_second = 0;
  std::vector<Node> nodes;
  std::vector<Departure> departures;  // the last ones

  bool operator==(const StatusReport&) const = default;
};

void encode(const StatusReport& report, Head& head);
Result<StatusReport> decode_status(Bytes head, const Limits& limits);
// The same as JSON text, for --json.
std::string to_json(const StatusReport& report);

}  // namespace w5xde
