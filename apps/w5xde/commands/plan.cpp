// w5xde plan: measures the engine, and predicts what a pool would make of it.
#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"
#include "commands/command.h"
#include "commands/plan_report.h"
#include "forecast/traffic.h"
#include "local_pool/interrupt.h"
#include "local_pool/lanes.h"
#include "local_pool/pool_run.h"
#include "node/machine.h"
#include "settings.h"

namespace w5xde {

namespace {

// A pool of some seconds does many steps that are shorter than this.
constexpr double kShortStepSeconds = 0.05;
constexpr unsigned kTrialNodesMax = 16;  // enough to slow each other down
constexpr double kTrialWarmUpSeconds = 1;

constexpr unsigned kNodesMax = static_cast<unsigned>(Limits{}.connections_max);

struct PlanOptions {
  Given given;
  unsigned nodes = 2;
  unsigned cores = 0;
  std::string link = "loopback";
  double slot_seconds = 0;
  double seconds = 1;
  std::string engine;
  std::string json;
};

// How fast a run is depends on the shape of its data, not on its values: noise will do.
Status choose_data(RunConfig& config) {
  if (!config.data.empty() || config.model.empty()) return {};
  if (!config.model.starts_with("mlp:"))
    return invalid("--model {} does not say what its samples look like; say --data", config.model);
  const std::string sizes = config.model.substr(4);
  config.data =
      fmt::format("random:{},{}", sizes.substr(0, sizes.find(',')), sizes.substr(sizes.rfind(',') + 1));
  return {};
}

Status check(const PlanOptions& options) {
  if (options.nodes == 0 || options.nodes > kNodesMax)
    return invalid("--nodes {}: use 1 to {}", options.nodes, kNodesMax);
  if (!(options.seconds > 0)) return invalid("--measure-seconds must be more than 0");
  if (!(options.slot_seconds >= 0)) return invalid("--slot-seconds must not be negative; 0: measured");
  return {};
}

// How many slots are computed at a time, at most.
std::uint32_t lanes_of(const PlanOptions& options, const RunConfig& config, const LinkSpeed& link) {
  if (options.cores > 0) return std::max(1u, options.cores / config.threads);
  return link.loopback() ? std::max(1u, Machine::here().cores / config.threads) : options.nodes;
}

// The part of the pool that this machine can run.
Situation here(const Situation& situation) {
  Situation part = situation;
  part.link = {};
  RunConfig& config = part.config;
  config.mode = Mode::sync;
  config.transport = {};
  config.transport.who_works = WhoWorks::all;  // it would change within the seconds of the trial
  config.batch_measured = false;
  config.steps = config.evaluate_every = 0;
  config.epochs = config.target_accuracy = config.target_loss = 0;
  config.patience = 0;
  part.nodes = std::min(situation.nodes, kTrialNodesMax);
  part.cores = std::min(situation.cores, Machine::here().cores);
  return part;
}

// Where steps are short, the time of a slot among others and the cost of exchanges decide: a pool of a few
// seconds shows both. False when a signal stopped it.
Result<bool> try_pool(const PlanOptions& options, Situation& situation) {
  Situation part = here(situation);
  part.config.seconds = kTrialWarmUpSeconds + 2 * options.seconds;
  Words flags = {"--log", "silent", "--cores", std::to_string(part.cores * part.config.threads)};
  for (const auto& [name, value] : given_for(part.config)) flags.insert(flags.end(), {"--" + name, value});
  fmt::print(stderr, "trying a pool of {} here, for some seconds\n", part.nodes);
  const Interrupt interrupt;
  const auto outcome = run_pool(
      {.nodes = part.nodes, .flags = flags, .engine = options.engine, .warm_up_seconds = kTrialWarmUpSeconds},
      {.interrupt = interrupt.descriptor()});
  if (interrupt.came()) return false;
  W5XDE_CHECK(outcome);
  double core_seconds = 0, slots = 0;
  for (const NodeSummary& node : outcome->summary.per_node) {
    core_seconds += node.compute_seconds * static_cast<double>(node.lanes);
    slots += static_cast<double>(node.batches);
  }
  const auto& warm = outcome->warm;
  if (!warm || warm->steps == 0 || slots == 0)
    return Error{ErrorKind::system, "the pool that was tried on this machine finished no step"};
  part.slot_seconds = situation.slot_seconds = core_seconds / slots;
  situation.exchange_seconds = exchange_seconds_for(part, warm->seconds / static_cast<double>(warm->steps));
  return true;
}

// The engine alone, slot after slot.
Status time_slots(const PlanOptions& options, const Workbench& bench, Situation& situation) {
  // Nodes of one machine slow each other down.
  const unsigned lanes =
      situation.one_machine() ? std::min({situation.nodes, situation.cores, Machine::here().cores}) : 1;
  W5XDE_TRY(const LaneFigures figures,
            compute_in_lanes(bench, {.lanes = lanes, .seconds = options.seconds, .slots_added_up = 2}));
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
  // Not earlier: an engine may start threads, and lanes are forks of this process.
  W5XDE_TRY(const auto engine, bench.make_engine());
  situation.shape = {engine->description().parameters, engine->description().floats()};
  situation.engine_bytes = std::max(situation.engine_bytes, peak_memory_bytes());
  if (told || !situation.one_machine() || !steps_are_short(situation)) return true;
  return try_pool(options, situation);
}

Result<ExitCode> run_plan(const PlanOptions& options) {
  W5XDE_CHECK(check(options));
  W5XDE_CHECK(check_folder_of(options.json));
  Plan plan{.link = options.link, .measured = options.slot_seconds == 0};
  Situation& situation = plan.situation;
  RunConfig& config = situation.config;
  auto settings = settings_of(config);
  W5XDE_CHECK(apply_settings(settings, options.given));
  W5XDE_CHECK(choose_data(config));
  W5XDE_TRY(situation.link, parse_link_speed(options.link));
  W5XDE_TRY(const Workbench bench, Workbench::open(config, options.engine));
  situation.nodes = options.nodes;
  situation.cores = lanes_of(options, config, situation.link);
  situation.samples = bench.data->samples();
  situation.sample_bytes = bench.data->sample_bytes();
  situation.sample_numbers = bench.data->sample_numbers();
  W5XDE_TRY(const bool measured, measure(options, bench, situation));
  if (!measured) return kInterrupted;
  plan.prediction = predict(situation);
  plan.advice = advise(situation);
  fmt::print("{}", to_text(plan));
  std::fflush(stdout);
  W5XDE_CHECK(write_text(options.json, to_json(plan)));
  return kSuccess;
}

}  // namespace

void add_plan(CLI::App& app, ExitCode& code) {
  auto* command =
      app.add_subcommand("plan", "What a run would need: time, bytes, memory, and what to change.");
  const auto options = std::make_shared<PlanOptions>();
  add_settings(*command, options->given);
  command->add_option("--nodes", options->nodes, "Nodes of the pool");
  command->add_option("--link", options->link,
                      "The coordinator's link, which all nodes share: RATE[,ROUND TRIP], as 20Mbps,20ms or "
                      "2MB/s; or loopback");
  command->option_defaults()->group(kPoolGroup);
  command->add_option("--cores", options->cores,
                      "Cores of all nodes together; 0: one a node, on loopback this machine's");
  command->add_option("--slot-seconds", options->slot_seconds,
                      "How long a slot takes on the nodes; 0: measured on this machine");
  command->add_option("--measure-seconds", options->seconds,
                      "How long the engine is timed; a pool, where one is tried, twice as long");
  command->add_option("--engine", options->engine, "The engine's shared library");
  command->add_option("--json", options->json, "Write the figures to this file too")->group(kRecordingGroup);
  command->footer(
      "Examples:\n"
      "  w5xde plan --model mlp:784,1024,1024,10 --nodes 4 --link 100mbit,40ms\n"
      "  w5xde plan --model mlp:10,20,10 --data synthetic --nodes 10");
  command->callback([options, &code] { code = exit_code(run_plan(*options)); });
}

}  // namespace w5xde
