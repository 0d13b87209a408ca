#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "child.h"
#include "seeds_report.h"

namespace w5xde {

struct ForecastOptions {
  unsigned nodes = 1;
  unsigned cores = 1;            // that the nodes share
  std::filesystem::path folder;  // there already, for what is written on the way
  std::string engine;            // empty: the one beside this program
};

// What w5xde plan says of one round of these cells of one workload and link, asked as a person would ask it.
// What a slot takes is measured first, on this machine as it is now: call it while no pool runs.
std::vector<Forecast> forecasts_of(std::span<const Cell> cells, const ForecastOptions& options,
                                   const Watch& watch);

}  // namespace w5xde
