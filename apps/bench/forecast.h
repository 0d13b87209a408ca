#pragma once

#include <filesystem>
#include <string>

#include "bench/report.h"
#include "local_pool/child.h"

namespace w5xde {

struct ForecastOptions {
  unsigned nodes = 1;
  unsigned cores = 1;            // that the nodes share
  std::filesystem::path folder;  // there already, for what is written on the way
  std::string engine;            // empty: the one beside this program
};

// What w5xde plan says of one round of this cell, asked as a person would ask it. It measures this machine as
// it is now: call it while no pool runs.
Forecast forecast_of(const Cell& cell, const ForecastOptions& options, const Watch& watch);

}  // namespace w5xde
