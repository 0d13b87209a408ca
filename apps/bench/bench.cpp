// w5xde bench compute and w5xde bench pool: what the engine does alone, and what a pool makes of it.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/report.h"
#include "commands/command.h"
#include "local_pool/lanes.h"
#include "local_pool/pool_run.h"
#include "settings.h"

namespace w5xde {

namespace {

struct BenchOptions {
  Given given;
  unsigned lanes = 2;
  unsigned nodes = 10;
  unsigned rounds = 5;
  double seconds = 4;
  std::string engine;
  std::string json;
};

Result<Workbench> prepare(const BenchOptions& options) {
  RunConfig config;
  config.model = "mlp:10,20,10";
  config.data = "synthetic";
  auto settings = settings_of(config);
  W5XDE_CHECK(apply_settings(settings, options.given));
  if (options.nodes == 0 || options.lanes == 0 || options.rounds == 0 || !(options.seconds > 0)) {
    return invalid("--nodes, --lanes, --rounds and --measure-seconds must be more than 0");
  }
  W5XDE_CHECK(check_folder_of(options.json));
  if (config.batch_measured)
    return invalid("a bench compares at one batch; say --batch N, as `w5xde train --batch auto` chose it");
  return Workbench::open(config, options.engine);
}

Result<double> compute(const Workbench& bench, const BenchOptions& options) {
  W5XDE_TRY(const LaneFigures figures,
            compute_in_lanes(bench, {.lanes = options.lanes, .seconds = options.seconds}));
  return figures.slots_per_second;
}

Result<Summary> pool(const BenchOptions& options, const RunConfig& config) {
  Words flags = {"--log", "silent", "--seconds", fmt::format("{}", options.seconds)};
  Given given = options.given;
  given.try_emplace("model", config.model);
  given.try_emplace("data", config.data);
  given.erase("seconds");
  for (const auto& [name, value] : given) flags.insert(flags.end(), {"--" + name, value});
  W5XDE_TRY(PoolOutcome outcome,
            run_pool({.nodes = options.nodes, .flags = flags, .engine = options.engine}, {}));
  return std::move(outcome.summary);
}

// How many more batches the busiest node did than the idlest, as a share of the idlest's.
double spread_of(const Summary& summary) {
  const auto [least, most] = std::ranges::minmax(summary.per_node, {}, &NodeSummary::batches);
  return static_cast<double>(most.batches) / static_cast<double>(std::max<std::uint64_t>(least.batches, 1)) -
         1;
}

Status run_compute(const BenchOptions& options) {
  W5XDE_TRY(const Workbench bench, prepare(options));
  std::vector<double> rates;
  for (unsigned round = 0; round < options.rounds; ++round) {
    W5XDE_TRY(const double rate, compute(bench, options));
    rates.push_back(rate);
    fmt::print("round {}  {:.0f} batches/s\n", round + 1, rate);
    std::fflush(stdout);
  }
  fmt::print("compute  {}  batch {}  {} lanes  median {:.0f} batches/s\n", bench.config.model,
             bench.config.batch, options.lanes, median(rates));
  const nlohmann::json json = {{"batches_per_second", median(rates)}, {"rounds", rates}};
  return write_text(options.json, json.dump(2) + "\n");
}

Status run_pools(const BenchOptions& options) {
  W5XDE_TRY(const Workbench bench, prepare(options));
  std::vector<double> alone, pooled, ratios, spreads;
  std::uint64_t memory = 0;
  for (unsigned round = 0; round < options.rounds; ++round) {
    W5XDE_TRY(const double rate, compute(bench, options));
    W5XDE_TRY(const Summary summary, pool(options, bench.config));
    alone.push_back(rate);
    pooled.push_back(summary.batches_per_second);
    ratios.push_back(summary.batches_per_second / rate);
    spreads.push_back(spread_of(summary));
    memory = std::max(memory, summary.memory_bytes);
    fmt::print("round {}  compute {:.0f}  pool {:.0f} batches/s  ratio {:.3f}  spread {:.1f} %  {:.0f} MB\n",
               round + 1, rate, summary.batches_per_second, ratios.back(), 100 * spreads.back(),
               static_cast<double>(summary.memory_bytes) * 1e-6);
    std::fflush(stdout);
  }
  fmt::print(
      "pool  {}  batch {}  {}  {} nodes against {} lanes: median ratio {:.3f}, spread between nodes {:.1f} "
      "%\n",
      bench.config.model, bench.config.batch, name_of(bench.config.mode), options.nodes, options.lanes,
      median(ratios), 100 * median(spreads));
  const nlohmann::json json = {{"compute_batches_per_second", median(alone)},
                               {"pool_batches_per_second", median(pooled)},
                               {"ratio", median(ratios)},
                               {"ratios", ratios},
                               {"node_spread", median(spreads)},
                               {"memory_bytes", memory}};
  return write_text(options.json, json.dump(2) + "\n");
}

void add(CLI::App& bench, ExitCode& code, const std::string& name, const std::string& help,
         const std::string& flags, Status (*run)(const BenchOptions&)) {
  auto* command = bench.add_subcommand(name, help);
  const auto options = std::make_shared<BenchOptions>();
  add_settings(*command, options->given);
  command->add_option("--lanes", options->lanes, "Cores for the engine alone");
  command->add_option("--nodes", options->nodes, "Nodes of the pool");
  command->add_option("--rounds", options->rounds, "How often each is measured; the median counts");
  command->add_option("--measure-seconds", options->seconds, "How long each measurement takes");
  command->add_option("--engine", options->engine, "The engine's shared library");
  command->add_option("--json", options->json, "Write the figures to this file too")->group(kRecordingGroup);
  command->footer(
      fmt::format("Example:\n  w5xde bench {} --model mlp:10,20,10 --data synthetic {}", name, flags));
  command->callback([options, run, &code] { code = exit_code(run(*options)); });
}

}  // namespace

void add_bench(CLI::App& app, ExitCode& code) {
  auto* bench = app.add_subcommand("bench", "Measured comparisons.");
  bench->require_subcommand(1);
  bench->footer("Example:\n  w5xde bench pool --model mlp:10,20,10 --data synthetic --nodes 10");
  add(*bench, code, "compute", "The engine alone: no network, no coordinator.", "--lanes 2", run_compute);
  add(*bench, code, "pool", "A pool and the engine alone, in turns.", "--nodes 10", run_pools);
  add_bench_original(*bench, code);
}

}  // namespace w5xde
