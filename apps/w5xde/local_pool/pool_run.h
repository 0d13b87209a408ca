#pragma once

#include <filesystem>

#include "local_pool/child.h"
#include "record/run_database.h"
#include "record/summary.h"
#include "w5xde/result.h"

namespace w5xde {

// What a pool is asked for, by the bench and by plan.
struct PoolRun {
  unsigned nodes = 1;
  Words flags;                   // of the run: --model, --seconds, …
  std::filesystem::path folder;  // there already; what the pool writes lies in it while it runs
  std::string engine;            // empty: the one beside this program
  double warm_up_seconds = 0;    // of those that the run is asked for, the first
};

struct PoolOutcome {
  Summary summary;                           // of the whole run
  std::optional<RunDatabase::Stretch> warm;  // after the warm-up; none: too few steps were recorded for that
};

// A pool on this machine, run as a person would run it: w5xde train.
Result<PoolOutcome> run_pool(const PoolRun& pool, const Watch& watch);

// The coordinator's part of a command, from its first word on: `command` is train or serve.
Words coordinator_words(const std::string& command, const PoolRun& pool);
std::filesystem::path output_of(const PoolRun& pool);
// Waits for the pool, reads what it came to, and tidies up after it.
Result<PoolOutcome> outcome_of(const PoolRun& pool, std::span<Child> children, const Watch& watch);

}  // namespace w5xde
