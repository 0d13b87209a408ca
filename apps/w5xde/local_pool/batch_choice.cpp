#include "local_pool/batch_choice.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/clock.h"
#include "base/random.h"
#include "coordinator/batches.h"
#include "node/machine.h"

namespace w5xde {

namespace {

constexpr std::uint32_t kSizeMin = 8;
// Fewer would leave a pool of some nodes without work.
constexpr std::uint32_t kStepSlotsMin = 8;
constexpr double kWorthIt = 0.9;
// The best of a few windows counts: other work makes an engine look slower, nothing makes it look faster.
constexpr int kWindows = 3;
constexpr double kWindowSeconds = 0.06;
// A lost node loses a slot, and the others wait for it.
constexpr double kSlotSecondsMax = 0.5;

std::uint64_t global_batch(const RunConfig& config) {
  return std::uint64_t{config.batch} * config.step_slots();
}

std::uint64_t machine_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

class Trial {
 public:
  Trial(Engine& engine, std::span<const float> state, Batch batch)
      : engine_(engine),
        state_(state),
        samples_(std::move(batch)),
        contribution_(state.size() * sizeof(float)) {}

  // Seconds per slot.
  Result<double> run() {
    W5XDE_CHECK(compute());  // the first is slow: it allocates
    double best = std::numeric_limits<double>::infinity();
    for (int window = 0; window < kWindows; ++window) {
      const Instant begun = SteadyClock().now();
      double elapsed = 0;
      unsigned calls = 0;
      while (elapsed < kWindowSeconds) {
        W5XDE_CHECK(compute());
        ++calls;
        elapsed = seconds_of(SteadyClock().now() - begun);
      }
      best = std::min(best, elapsed / (calls * double{kSlots}));
      if (best > kSlotSecondsMax) break;
    }
    return best;
  }

 private:
  static constexpr unsigned kSlots = 2;

  // Adds slots up, as nodes do it.
  Status compute() {
    const std::span<float> contribution(reinterpret_cast<float*>(contribution_.data()), state_.size());
    const float* const first[] = {contribution.data()};
    W5XDE_CHECK(engine_.compute(state_, {samples_.samples(), 1}, {}, contribution));
    W5XDE_CHECK(engine_.compute(state_, {samples_.samples(), kSlots}, first, contribution));
    return {};
  }

  Engine& engine_;
  std::span<const float> state_;
  Batch samples_;
  AlignedBuffer contribution_;
};

}  // namespace

std::vector<std::uint32_t> batch_sizes(const RunConfig& config, std::uint64_t samples) {
  const std::uint64_t most =
      std::min(samples, std::max<std::uint64_t>(kSizeMin, global_batch(config) / kStepSlotsMin));
  std::vector<std::uint32_t> sizes = {static_cast<std::uint32_t>(std::min<std::uint64_t>(kSizeMin, most))};
  while (sizes.back() * std::uint64_t{2} <= most) sizes.push_back(sizes.back() * 2);
  return sizes;
}

Result<std::vector<BatchTrial>> try_batches(Engine& engine, const std::shared_ptr<const Dataset>& data,
                                            std::uint64_t seed, std::span<const std::uint32_t> sizes) {
  AlignedBuffer memory(engine.description().floats() * sizeof(float));
  std::memset(memory.data(), 0, memory.capacity());
  const std::span<float> state(reinterpret_cast<float*>(memory.data()), engine.description().floats());
  W5XDE_CHECK(engine.initialise(mix(seed), state));
  std::vector<BatchTrial> trials;
  for (const std::uint32_t batch : sizes) {
    Batches batches(data, {.samples = data->samples(), .batch = batch, .shuffle = false});
    W5XDE_TRY(Batch samples, batches.make(0, 1));
    W5XDE_TRY(const double seconds, Trial(engine, state, std::move(samples)).run());
    trials.push_back({batch, batch / seconds});
    if (seconds > kSlotSecondsMax || proportional_set_bytes(getpid()) > machine_bytes() / 4) break;
  }
  return trials;
}

BatchChoice choose_batch(const RunConfig& config, std::span<const BatchTrial> trials) {
  const double best = std::ranges::max(trials, {}, &BatchTrial::samples_per_second).samples_per_second;
  const auto chosen = std::ranges::find_if(
      trials, [&](const BatchTrial& trial) { return trial.samples_per_second >= kWorthIt * best; });
  const auto batch = static_cast<std::uint32_t>(chosen->batch);
  const double slots = static_cast<double>(global_batch(config)) / batch / config.accumulate;
  const std::uint32_t slots_min = (kStepSlotsMin + config.accumulate - 1) / config.accumulate;
  return {batch, std::max(slots_min, static_cast<std::uint32_t>(std::llround(slots)))};
}

}  // namespace w5xde
