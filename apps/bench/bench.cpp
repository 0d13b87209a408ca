// w5xde bench compute and w5xde bench pool: what the engine does alone, and what a pool makes of it.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "bench/report.h"
#include "commands/commands.h"
#include "local_pool/lanes.h"
#include "local_pool/pool_run.h"
#include "local_pool/scratch.h"
#include "record/summary.h"

namespace w5xde {

namespace {

Result<Workbench> prepare(const BenchOptions& options) {
  RunConfig config;
  config.model = "mlp:10,20,10";
  config.data = "synthetic";
  auto settings = settings_of(config);
  W5XDE_CHECK(apply(settings, options.given));
  if (options.lanes == 0 || options.rounds == 0 || !(options.seconds > 0)) {
    return invalid("--lanes, --rounds and --measure-seconds must be more than 0");
  }
  return Workbench::open(config, options.engine);
}

Result<double> compute(const Workbench& bench, const BenchOptions& options) {
  W5XDE_TRY(const LaneFigures figures,
            compute_in_lanes(bench, {.lanes = options.lanes, .seconds = options.seconds}));
  return figures.slots_per_second;
}

Result<PoolOutcome> pool(const BenchOptions& options, const Workbench& bench,
                         const std::filesystem::path& folder) {
  Words flags = {"--log", "silent", "--seconds", fmt::format("{}", options.seconds)};
  Given given = options.given;
  given.try_emplace("model", bench.config.model);
  given.try_emplace("data", bench.config.data);
  given.erase("seconds");
  for (const auto& [name, value] : given) flags.insert(flags.end(), {"--" + name, value});
  return run_pool({.nodes = options.nodes, .flags = flags, .folder = folder, .engine = options.engine}, {});
}

// By how much the busiest node did more than the idlest, of what the idlest did.
double spread_of(const Summary& summary) {
  const auto [least, most] = std::ranges::minmax(summary.per_node, {}, &NodeSummary::batches);
  return static_cast<double>(most.batches) / static_cast<double>(std::max<std::uint64_t>(least.batches, 1)) -
         1;
}

Status write_json(const std::string& path, const nlohmann::json& figures) {
  if (path.empty()) return {};
  return write_text(path, figures.dump(2) + "\n");
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
  return write_json(options.json, {{"batches_per_second", median(rates)}, {"rounds", rates}});
}

Status run_pool(const BenchOptions& options) {
  W5XDE_TRY(const Workbench bench, prepare(options));
  const Scratch scratch("bench");
  std::vector<double> alone, pooled, ratios, spreads;
  std::uint64_t memory = 0;
  for (unsigned round = 0; round < options.rounds; ++round) {
    W5XDE_TRY(const double rate, compute(bench, options));
    W5XDE_TRY(const PoolOutcome outcome, pool(options, bench, scratch.path));
    const Summary& summary = outcome.summary;
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
  return write_json(options.json, {{"compute_batches_per_second", median(alone)},
                                   {"pool_batches_per_second", median(pooled)},
                                   {"ratio", median(ratios)},
                                   {"ratios", ratios},
                                   {"node_spread", median(spreads)},
                                   {"memory_bytes", memory}});
}

}  // namespace

ExitCode bench_compute(const BenchOptions& options) {
  const Status status = run_compute(options);
  return status.ok() ? kSuccess : report(status.error());
}

ExitCode bench_pool(const BenchOptions& options) {
  const Status status = run_pool(options);
  return status.ok() ? kSuccess : report(status.error());
}

}  // namespace w5xde
