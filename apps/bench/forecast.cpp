#include "bench/forecast.h"

#include "base/file.h"
#include "bench/studies.h"
#include "commands/plan_report.h"

namespace w5xde {

namespace {

Result<PlanFigures> ask_plan(const Cell& cell, const ForecastOptions& options, const Watch& watch) {
  W5XDE_TRY(const std::string program, own_program());
  const auto json = options.folder / "plan.json";
  Words words = {program,   "plan",
                 "--json",  json.string(),
                 "--link",  cell.link,
                 "--nodes", std::to_string(options.nodes),
                 "--cores", std::to_string(options.cores)};
  if (!options.engine.empty()) words.insert(words.end(), {"--engine", options.engine});
  const Words run = run_flags(cell, options.nodes);
  words.insert(words.end(), run.begin(), run.end());
  W5XDE_TRY(Child child, Child::start(words, options.folder / "plan.txt"));
  W5XDE_CHECK(wait_for({&child, 1}, watch));
  W5XDE_TRY(const MappedFile file, MappedFile::open(json));
  return plan_figures_from_json(text_of(file.bytes()));
}

}  // namespace

Forecast forecast_of(const Cell& cell, const ForecastOptions& options, const Watch& watch) {
  Forecast forecast{.cell = cell, .rounds = {{}}};
  const auto figures = ask_plan(cell, options, watch);
  if (!figures.ok()) {
    forecast.problem = figures.error().message;
    return forecast;
  }
  forecast.rounds.front() = {figures->batches_per_second * kPublishedSeconds, figures->slot_seconds};
  forecast.bottleneck = figures->bottleneck;
  return forecast;
}

}  // namespace w5xde
