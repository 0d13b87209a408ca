#pragma once

#include <string>

#include "local_pool/child.h"
#include "run/run_config.h"
#include "w5xde/result.h"

namespace w5xde {

// A pool on this machine, for a few seconds. It shows what the engine alone does not: what a slot takes where
// its caches are everybody's, and what steps take beside their slots.
struct PoolTrial {
  struct Options {
    RunConfig config;  // but for where it ends
    unsigned nodes = 1;
    unsigned cores = 1;
    double seconds = 2;  // after it has warmed up
    std::string engine;  // empty: the one beside this program
  };
  static Result<PoolTrial> run(const Options& options, const Watch& watch);

  double slot_seconds = 0;  // of one core
  double step_seconds = 0;
};

}  // namespace w5xde
