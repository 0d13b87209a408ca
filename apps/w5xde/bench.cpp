// w5xde bench compute and w5xde bench pool: what the engine does alone, and what a pool makes of it.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "commands.h"
#include "coordinator/batches.h"
#include "learn/engine.h"
#include "learn/seeds.h"
#include "nursery.h"
#include "pool_run.h"
#include "seeds_report.h"

namespace w5xde {

namespace {

struct Bench {
  RunConfig config;
  std::shared_ptr<const Dataset> data;
  EngineLibrary library;
  ModelOptions model;
};

Result<Bench> prepare(const BenchOptions& options) {
  RunConfig config;
  config.model = "mlp:10,20,10";
  config.data = "synthetic";
  auto settings = settings_of(config);
  W5XDE_CHECK(apply(settings, options.given));
  W5XDE_CHECK(config.check());
  if (options.lanes == 0 || options.rounds == 0 || !(options.seconds > 0)) {
    return invalid("--lanes, --rounds and --measure-seconds must be more than 0");
  }
  W5XDE_TRY(const auto path, find_engine(options.engine));
  W5XDE_TRY(const EngineLibrary library, EngineLibrary::load(path, config.threads));
  W5XDE_TRY(auto data, open_dataset(config.data, Split::train, config.seed));
  const std::string loss = config.loss != "auto" ? config.loss
                           : data->classes() > 0 ? "cross-entropy"
                                                 : "mse";
  const ModelOptions model{.model = config.model,
                           .loss = loss,
                           .sample_shape = data->inputs().shape,
                           .classes = data->classes(),
                           .threads = config.threads};
  return Bench{config, std::move(data), library, model};
}

// One lane: slot after slot for so long. How many it did a second.
Result<double> lane(const Bench& bench, double seconds) {
  const bool scripted = bench.config.model.ends_with(".pt");
  W5XDE_TRY(const auto engine, bench.library.make(bench.model, scripted ? bench.config.model : ""));
  const std::uint64_t floats = engine->description().floats();
  AlignedBuffer state(floats * sizeof(float)), contribution(floats * sizeof(float));
  const std::span<float> parameters(reinterpret_cast<float*>(state.data()), floats);
  const std::span<float> gradient(reinterpret_cast<float*>(contribution.data()), floats);
  W5XDE_CHECK(engine->initialise(bench.config.seed, parameters));
  Batches batches(bench.data,
                  {.samples = bench.data->samples(), .batch = bench.config.batch, .seed = bench.config.seed});
  std::uint64_t slots = 0;
  const auto compute = [&]() -> Status {
    const auto batch = batches.make(slots % batches.sampler().slots_per_epoch(), 1);
    W5XDE_TRY([[maybe_unused]] const Sums sums,
              engine->compute(parameters, {batch.payload[0], batch.payload[1]}, slot_seed(1, 0), gradient));
    ++slots;
    return {};
  };
  for (int warm_up = 0; warm_up < 3; ++warm_up) W5XDE_CHECK(compute());
  slots = 0;
  const Instant begun = SteadyClock().now();
  Duration elapsed{};
  while ((elapsed = SteadyClock().now() - begun) < duration_of(seconds)) W5XDE_CHECK(compute());
  return static_cast<double>(slots) / seconds_of(elapsed);
}

// Lanes are processes, as nodes are.
Result<double> compute(const Bench& bench, unsigned lanes, double seconds) {
  std::vector<int> pipes;
  for (unsigned i = 0; i < lanes; ++i) {
    int ends[2];
    if (pipe(ends) != 0) return system_error("making a pipe", errno);
    if (fork() == 0) {
      const auto rate = lane(bench, seconds);
      if (!rate.ok()) report(rate.error());
      const double value = rate.ok() ? *rate : -1;
      (void)!write(ends[1], &value, sizeof value);
      _exit(0);
    }
    close(ends[1]);
    pipes.push_back(ends[0]);
  }
  double total = 0;
  bool failed = false;
  for (const int end : pipes) {
    double value = -1;
    failed = read(end, &value, sizeof value) != sizeof value || value < 0 || failed;
    total += value;
    close(end);
  }
  while (wait(nullptr) > 0) {
  }
  if (failed) return Error{ErrorKind::system, "a lane could not compute"};
  return total;
}

Result<Summary> pool(const BenchOptions& options, const Bench& bench, const std::filesystem::path& folder) {
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
  W5XDE_TRY(const Bench bench, prepare(options));
  std::vector<double> rates;
  for (unsigned round = 0; round < options.rounds; ++round) {
    W5XDE_TRY(const double rate, compute(bench, options.lanes, options.seconds));
    rates.push_back(rate);
    fmt::print("round {}  {:.0f} batches/s\n", round + 1, rate);
    std::fflush(stdout);
  }
  fmt::print("compute  {}  batch {}  {} lanes  median {:.0f} batches/s\n", bench.config.model,
             bench.config.batch, options.lanes, median(rates));
  return write_json(options.json, {{"batches_per_second", median(rates)}, {"rounds", rates}});
}

Status run_pool(const BenchOptions& options) {
  W5XDE_TRY(const Bench bench, prepare(options));
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("w5xde-bench-{}", getpid());
  std::filesystem::create_directories(folder);
  std::vector<double> alone, pooled, ratios, spreads;
  std::uint64_t memory = 0;
  for (unsigned round = 0; round < options.rounds; ++round) {
    W5XDE_TRY(const double rate, compute(bench, options.lanes, options.seconds));
    W5XDE_TRY(const Summary summary, pool(options, bench, folder));
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
  std::filesystem::remove_all(folder);
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
