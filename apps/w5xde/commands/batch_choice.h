// --batch auto: the slot size that makes the most of the engine, measured before a run begins.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "learn/engine.h"
#include "record/summary.h"
#include "run/run_config.h"
#include "w5xde/result.h"

namespace w5xde {

// The sizes worth measuring: 8, 16, 32, … samples, while the data has as many and the run's global batch
// makes a step of eight such slots.
std::vector<std::uint32_t> batch_sizes(const RunConfig& config, std::uint64_t samples);

// Computes slots of each size for a fraction of a second. Ends early where a slot takes long, or much of the
// machine's memory.
Result<std::vector<BatchTrial>> try_batches(Engine& engine, const Dataset& data, std::uint64_t seed,
                                            std::span<const std::uint32_t> sizes);

struct BatchChoice {
  std::uint32_t batch = 0;
  std::uint32_t slots = 0;

  bool operator==(const BatchChoice&) const = default;
};
// The smallest size that is within a tenth of the best, and as many slots as make the global batch that the
// run was asked for, or nearly; eight a step at least. `trials` has one at least.
BatchChoice choose_batch(const RunConfig& config, std::span<const BatchTrial> trials);

}  // namespace w5xde
