// w5xde plan: measures the engine, and reckons what a pool would make of it.
#include <fmt/format.h>

#include <algorithm>

#include "commands/commands.h"
#include "commands/plan_report.h"
#include "forecast/traffic.h"
#include "local_pool/interrupt.h"
#include "local_pool/lanes.h"
#include "local_pool/pool_trial.h"
#include "node/machine.h"

namespace w5xde {

namespace {

// Steps of which a pool of some seconds does many.
constexpr double kShortStepSeconds = 0.05;
constexpr unsigned kTrialNodesMax = 16;  // enough to be in each other's way

constexpr unsigned kNodesMax = static_cast<unsigned>(Limits{}.connections_max);

// How fast a run is does not depend on what the data says, only on what it looks like: noise will do.
Status choose_data(RunConfig& config) {
  if (!config.data.empty() || config.model.empty()) return {};
  if (!config.model.starts_with("mlp:"))
    return invalid(
        fmt::format("--model {} does not say what its samples look like; say --data", config.model));
  const std::string sizes = config.model.substr(4);
  config.data =
      fmt::format("random:{},{}", sizes.substr(0, sizes.find(',')), sizes.substr(sizes.rfind(',') + 1));
  return {};
}

Status check(const PlanOptions& options) {
  if (options.nodes == 0 || options.nodes > kNodesMax)
    return invalid(fmt::format("--nodes {}: 1 to {}", options.nodes, kNodesMax));
  if (!(options.seconds > 0)) return invalid("--measure-seconds must be more than 0");
  if (!(options.slot_seconds >= 0)) return invalid("--slot-seconds must not be negative; 0: measured");
  return {};
}

// How many slots are computed at a time, at most.
std::uint32_t lanes_of(const PlanOptions& options, const RunConfig& config, const LinkSpeed& link) {
  if (options.cores > 0) return std::max(1u, options.cores / config.threads);
  return link.loopback() ? std::max(1u, Machine::here().cores / config.threads) : options.nodes;
}

// The pool, as much of it as this machine can play.
Situation here(const Situation& situation) {
  Situation part = situation;
  part.link = {};
  part.config.mode = Mode::sync;
  part.config.transport = {};
  // Who works would change within the seconds that this has.
  part.config.transport.who_works = WhoWorks::all;
  part.config.batch_measured = false;
  part.nodes = std::min(situation.nodes, kTrialNodesMax);
  part.cores = std::min(situation.cores, Machine::here().cores);
  return part;
}

// Where steps are short, what a slot takes among others and what exchanges cost decide: a pool shows it.
// False when a signal stopped it.
Result<bool> try_pool(const PlanOptions& options, Situation& situation) {
  Situation part = here(situation);
  fmt::print(stderr, "trying a pool of {} here, for some seconds\n", part.nodes);
  const Interrupt interrupt;
  const auto trial = PoolTrial::run({.config = part.config,
                                     .nodes = part.nodes,
                                     .cores = part.cores * part.config.threads,
                                     .seconds = 2 * options.seconds,
                                     .engine = options.engine},
                                    {.interrupt = interrupt.descriptor()});
  if (interrupt.came()) return false;
  W5XDE_CHECK(trial);
  part.slot_seconds = situation.slot_seconds = trial->slot_seconds;
  situation.exchange_seconds = exchange_seconds_for(part, trial->step_seconds);
  return true;
}

// The engine alone, slot after slot.
Status time_slots(const PlanOptions& options, const Workbench& bench, Situation& situation) {
  // Nodes of one machine are in each other's way; those of others are not.
  const unsigned lanes =
      situation.one_machine() ? std::min({situation.nodes, situation.cores, Machine::here().cores}) : 1;
  W5XDE_TRY(const LaneFigures figures,
            compute_in_lanes(bench, {.lanes = lanes, .seconds = options.seconds, .slots_at_once = 2}));
  situation.slot_seconds = lanes / figures.slots_per_second;
  situation.engine_bytes = figures.memory_bytes;
  return {};
}

bool steps_are_short(const Situation& situation) {
  return situation.config.step_slots() * situation.slot_seconds / situation.cores < kShortStepSeconds;
}

// False when a signal stopped it.
Result<bool> measure(const PlanOptions& options, const Workbench& bench, Situation& situation) {
  const bool told = options.slot_seconds > 0;
  situation.slot_seconds = options.slot_seconds;
  if (!told) {
    W5XDE_CHECK(time_slots(options, bench, situation));
    situation.codec_pace = measured_codec_pace();
  }
  // Not sooner: an engine may start threads, and lanes are forks of this process.
  W5XDE_TRY(const auto engine, bench.make_engine());
  situation.shape = {engine->description().parameters, engine->description().floats()};
  situation.engine_bytes = std::max(situation.engine_bytes, peak_memory_bytes());
  if (told || !situation.one_machine() || !steps_are_short(situation)) return true;
  return try_pool(options, situation);
}

Result<ExitCode> run_plan(const PlanOptions& options) {
  W5XDE_CHECK(check(options));
  Plan plan{.link = options.link, .measured = options.slot_seconds == 0};
  Situation& situation = plan.situation;
  RunConfig& config = situation.config;
  auto settings = settings_of(config);
  W5XDE_CHECK(apply(settings, options.given));
  W5XDE_CHECK(choose_data(config));
  W5XDE_TRY(situation.link, parse_link_speed(options.link));
  W5XDE_TRY(const Workbench bench, Workbench::open(config, options.engine));
  situation.nodes = options.nodes;
  situation.cores = lanes_of(options, config, situation.link);
  situation.samples = bench.data->samples();
  situation.sample_bytes = bench.data->inputs().sample_bytes() + bench.data->targets().sample_bytes();
  situation.sample_numbers = bench.data->inputs().shape.elements() + bench.data->targets().shape.elements();
  W5XDE_TRY(const bool measured, measure(options, bench, situation));
  if (!measured) return kInterrupted;
  plan.prediction = predict(situation);
  plan.advice = advise(situation);
  fmt::print("{}", to_text(plan));
  std::fflush(stdout);
  if (!options.json.empty()) W5XDE_CHECK(write_text(options.json, to_json(plan)));
  return kSuccess;
}

}  // namespace

ExitCode plan(const PlanOptions& options) {
  const auto code = run_plan(options);
  return code.ok() ? *code : report(code.error());
}

}  // namespace w5xde
