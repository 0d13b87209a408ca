#include "local_pool/lanes.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "coordinator/batches.h"
#include "learn/seeds.h"
#include "local_pool/run_model.h"
#include "local_pool/run_request.h"

namespace w5xde {

namespace {

// Computes slots for options.seconds; slots per second.
// noexcept: it is a forked process, which must not unwind into main.
Result<double> lane(const Workbench& bench, const LaneOptions& options) noexcept {
  W5XDE_TRY(const auto engine, bench.make_engine());
  const std::uint64_t floats = engine->description().floats();
  AlignedBuffer state(floats * sizeof(float)), contribution(floats * sizeof(float));
  const std::span<float> parameters(reinterpret_cast<float*>(state.data()), floats);
  const std::span<float> gradient(reinterpret_cast<float*>(contribution.data()), floats);
  W5XDE_CHECK(engine->initialise(bench.config.seed, parameters));
  Batches batches(bench.data,
                  {.samples = bench.data->samples(), .batch = bench.config.batch, .seed = bench.config.seed});
  std::uint64_t slots = 0;
  const float* const earlier[] = {gradient.data()};
  const auto compute = [&]() -> Status {
    for (unsigned i = 0; i < options.slots_added_up; ++i, ++slots) {
      W5XDE_TRY(const Batch batch, batches.make(slots % batches.sampler().slots_per_epoch(), 1));
      const Engine::Addends addends = i == 0 ? Engine::Addends() : Engine::Addends(earlier);
      W5XDE_CHECK(engine->compute(parameters, {batch.samples(), slot_seed(1, 0)}, addends, gradient));
    }
    return {};
  };
  for (int warm_up = 0; warm_up < 3; ++warm_up) W5XDE_CHECK(compute());
  slots = 0;
  const Instant begun = SteadyClock().now();
  Duration elapsed{};
  while ((elapsed = SteadyClock().now() - begun) < duration_of(options.seconds)) W5XDE_CHECK(compute());
  return static_cast<double>(slots) / seconds_of(elapsed);
}

}  // namespace

Result<Workbench> Workbench::open(const RunConfig& config, const std::string& engine) {
  W5XDE_CHECK(config.check());
  W5XDE_TRY(const auto path, find_engine(engine));
  W5XDE_TRY(const EngineLibrary library, EngineLibrary::load(path, config.threads));
  W5XDE_TRY(auto data, open_samples(config));
  ModelOptions model = model_options(config, *data.train, "auto");
  return Workbench{config, std::move(data.train), library, std::move(model)};
}

Result<std::unique_ptr<Engine>> Workbench::make_engine() const {
  return library.make(model, is_script(config.model) ? config.model : "");
}

Result<LaneFigures> compute_in_lanes(const Workbench& bench, const LaneOptions& options) {
  std::vector<int> pipes;
  for (unsigned i = 0; i < options.lanes; ++i) {
    int ends[2];
    if (pipe(ends) != 0) return system_error("making a pipe", errno);
    if (fork() == 0) {
      const auto rate = lane(bench, options);
      if (!rate.ok()) fmt::print(stderr, "w5xde: {}\n", rate.error().message);
      const LaneFigures figures{rate.ok() ? *rate : -1, peak_memory_bytes()};
      (void)!write(ends[1], &figures, sizeof figures);
      _exit(0);
    }
    close(ends[1]);
    pipes.push_back(ends[0]);
  }
  LaneFigures total;
  bool failed = false;
  for (const int end : pipes) {
    LaneFigures figures{-1, 0};
    failed = read(end, &figures, sizeof figures) != sizeof figures || figures.slots_per_second < 0 || failed;
    total.slots_per_second += figures.slots_per_second;
    total.memory_bytes = std::max(total.memory_bytes, figures.memory_bytes);
    close(end);
  }
  while (wait(nullptr) > 0) {
  }
  if (failed) return Error{ErrorKind::system, "a lane could not compute"};
  return total;
}

std::uint64_t peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace w5xde
