#include "seeds_forecast.h"

#include <fmt/format.h>

#include "base/file.h"
#include "plan_report.h"
#include "seeds_plan.h"

namespace w5xde {

namespace {

Result<PlanFigures> ask_plan(const Cell& cell, const Words& more, const ForecastOptions& options,
                             const Watch& watch) {
  W5XDE_TRY(const std::string program, own_program());
  const auto json = options.folder / "plan.json";
  Words words = {program,   "plan",
                 "--json",  json.string(),
                 "--nodes", std::to_string(options.nodes),
                 "--cores", std::to_string(options.cores)};
  if (!options.engine.empty()) words.insert(words.end(), {"--engine", options.engine});
  for (const Words& part : {run_flags(cell, options.nodes), more}) {
    words.insert(words.end(), part.begin(), part.end());
  }
  W5XDE_TRY(Child child, Child::start(words, options.folder / "plan.txt"));
  W5XDE_CHECK(wait_for({&child, 1}, watch));
  W5XDE_TRY(const MappedFile file, MappedFile::open(json));
  return plan_figures_from_json(text_of(file.bytes()));
}

// On loopback, whatever link the cell has: its nodes compute side by side on this machine, and would be
// measured as if each had one of its own.
Result<double> slot_seconds_of(const Cell& cell, const ForecastOptions& options, const Watch& watch) {
  W5XDE_TRY(const PlanFigures figures,
            ask_plan(cell, {"--link", "loopback", "--measure-seconds", "1"}, options, watch));
  return figures.slot_seconds;
}

}  // namespace

std::vector<Forecast> forecasts_of(std::span<const Cell> cells, const ForecastOptions& options,
                                   const Watch& watch) {
  if (cells.empty()) return {};
  const auto slot_seconds = slot_seconds_of(cells.front(), options, watch);
  std::vector<Forecast> forecasts;
  for (const Cell& cell : cells) {
    Forecast& forecast = forecasts.emplace_back(Forecast{.cell = cell, .rounds = {{}}});
    const auto figures = [&]() -> Result<PlanFigures> {
      if (!slot_seconds.ok()) return slot_seconds.error();
      return ask_plan(cell, {"--link", cell.link, "--slot-seconds", fmt::format("{}", *slot_seconds)},
                      options, watch);
    }();
    if (!figures.ok()) {
      forecast.problem = figures.error().message;
      continue;
    }
    forecast.rounds.front() = {figures->batches_per_second * kSeedsSeconds, figures->slot_seconds};
    forecast.bottleneck = figures->bottleneck;
  }
  return forecasts;
}

}  // namespace w5xde
