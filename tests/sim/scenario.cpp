#include "sim/scenario.h"

#include <fmt/format.h>

#include <array>

namespace w5xde {

namespace {

template <class T, std::size_t n>
T one_of(Random& random, const T (&choices)[n]) {
  return choices[random.below(n)];
}

bool chance(Random& random, double probability) {
  return random.unit() < probability;
}

RunConfig make_config(Random& random) {
  RunConfig config{.model = "fake", .data = "synthetic"};
  config.seed = 11 + random.below(4);
  config.mode = chance(random, 0.15) ? Mode::async : Mode::sync;
  config.batch = one_of<std::uint32_t>(random, {8, 24, 25, 64});
  config.slots = 1 + static_cast<std::uint32_t>(random.below(12));
  if (chance(random, 0.3)) {
    config.epochs = one_of<double>(random, {1, 1.5, 2});
    config.batch = 64;
  } else {
    config.steps = 5 + random.below(16);
  }
  config.optimizer.kind = chance(random, 0.5) ? OptimizerOptions::Kind::adam : OptimizerOptions::Kind::sgd;
  if (config.optimizer.kind == OptimizerOptions::Kind::sgd && chance(random, 0.5))
    config.optimizer.momentum = 0.9;
  config.optimizer.learning_rate = 0.02;
  if (random.below(2) == 1) config.schedule = parse_schedule("cosine+warmup:3", 1).value();
  config.clip_norm = chance(random, 0.3) ? 2 : 0;
  config.turns = chance(random, 0.7);
  config.checkpoint_seconds = one_of<double>(random, {0.01, 0.1, 2});
  config.keep = 1 + static_cast<std::uint32_t>(random.below(3));
  Transport& transport = config.transport;
  transport.codec =
      parse_lossless_choice(one_of<const char*>(random, {"auto", "none", "lz4", "zstd", "zlib"})).value();
  if (chance(random, 0.1)) transport.serialization = Serialization::generic;
  if (chance(random, 0.4)) transport.part_bytes = 64;
  transport.who_works = one_of<WhoWorks>(random, {WhoWorks::fastest, WhoWorks::all});
  transport.sample_cache =
      one_of<SampleCaching>(random, {SampleCaching::automatic, SampleCaching::on, SampleCaching::off});
  return config;
}

// Steps of one size, and an optimizer that only adds up: what is applied can be told from the parameters.
void use_feedback(Random& random, RunConfig& config) {
  config.mode = Mode::sync;
  config.batch = one_of<std::uint32_t>(random, {8, 25});
  config.epochs = 0;
  config.steps = 5 + random.below(16);
  // A large rate: what is lost of a gradient shows above the rounding.
  config.optimizer = {.kind = OptimizerOptions::Kind::sgd, .learning_rate = 0.5};
  config.schedule = {};
  config.clip_norm = 0;
  config.transport.serialization = Serialization::direct;
  config.transport.gradient_codec =
      parse_gradient_choice(one_of<const char*>(random, {"topk:0.1", "onebit", "int8", "powersgd:2"}))
          .value();
}

}  // namespace

NodePlan make_node(Random& random, std::size_t number) {
  NodePlan plan;
  plan.name = "node-" + std::to_string(number);
  if (chance(random, 0.5)) {
    plan.machine.id = "machine-" + std::to_string(random.below(2));
    plan.machine.cores = 2;
  }
  plan.slot_seconds = one_of<double>(random, {0.0002, 0.001, 0.004, 0.03, 0.3});
  plan.link.latency = duration_of(one_of<double>(random, {20e-6, 200e-6, 5e-3, 50e-3}));
  plan.link.jitter = one_of<double>(random, {0.2, 1, 5});
  plan.link.bytes_per_second = one_of<double>(random, {1e9, 10e6, 200e3});
  plan.link.buffer_bytes = one_of<std::size_t>(random, {1024, 16 * 1024, 256 * 1024});
  plan.link.short_chance = one_of<double>(random, {0, 0.1, 0.5});
  plan.link.loopback = chance(random, 0.6);
  return plan;
}

Scenario make_scenario(std::uint64_t seed) {
  Random random(mix(seed, 0));
  Scenario scenario;
  scenario.config = make_config(random);
  scenario.feeds_back = chance(random, 0.15);
  if (scenario.feeds_back) use_feedback(random, scenario.config);
  scenario.evaluates = chance(random, 0.4);
  if (scenario.evaluates && chance(random, 0.6)) scenario.config.evaluate_every = 1 + random.below(5);
  scenario.large = chance(random, 0.3);
  scenario.shares_memory = chance(random, 0.4);
  const std::size_t nodes = 1 + random.below(5);
  for (std::size_t i = 1; i <= nodes; ++i) scenario.nodes.push_back(make_node(random, i));
  scenario.fault_seconds = one_of<double>(random, {0.003, 0.03, 0.3});
  scenario.faults = chance(random, 0.1) ? 0 : static_cast<unsigned>(random.below(25));
  // Few kinds at a time go deeper than all at once.
  const double kind_chance = one_of<double>(random, {0.15, 0.4, 1});
  for (int kind = 0; kind < static_cast<int>(Fault::count_); ++kind) {
    // Who lies may lie about its error feedback too, and nobody can tell.
    if (scenario.feeds_back && static_cast<Fault>(kind) == Fault::join_hostile) continue;
    if (chance(random, kind_chance)) scenario.kinds.push_back(static_cast<Fault>(kind));
  }
  // Nodes that hand over what their codec has not sent yet: often enough to see whether it arrives.
  if (scenario.feeds_back) scenario.kinds.insert(scenario.kinds.end(), 2, Fault::leave_node);
  if (scenario.kinds.empty()) scenario.kinds.push_back(Fault::kill_node);
  scenario.tokens = chance(random, 0.3);
  return scenario;
}

std::string_view name_of(Fault fault) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Fault::count_)> kNames = {
      "kill a node",
      "a node's machine loses power",
      "a node leaves",
      "a node joins",
      "a hostile node joins",
      "kill the coordinator",
      "kill the coordinator while it writes",
      "the coordinator's machine loses power",
      "stop the coordinator",
      "block a link",
      "cut a link",
      "flip a bit",
      "slow a link down",
      "freeze a node",
      "freeze the coordinator",
      "a node's clock jumps",
      "the coordinator's clock jumps",
      "the disk is full",
      "a sync fails",
      "the disk is slow"};
  return kNames[static_cast<std::size_t>(fault)];
}

std::string Scenario::describe() const {
  std::string end =
      config.steps > 0 ? fmt::format("{} steps", config.steps) : fmt::format("{} epochs", config.epochs);
  return fmt::format("{} × {} samples, {}, {}, {}, {} nodes, {} faults{}{}{}{}", config.slots, config.batch,
                     end, name_of(config.mode), to_string(config.transport.gradient_codec), nodes.size(),
                     faults, large ? ", a large model" : "", shares_memory ? ", shared memory" : "",
                     evaluates ? ", evaluates" : "", tokens ? ", token data" : "");
}

}  // namespace w5xde
