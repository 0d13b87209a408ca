// --batch auto: the slot size with which the engine is fastest, measured before a run begins.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "learn/engine_library.h"
#include "record/summary.h"
#include "run/run_config.h"
#include "w5xde/result.h"

namespace w5xde {

// The sizes worth measuring: 8, 16, 32, … samples, while the data has as many and the run's global batch
// makes a step of eight such slots.
std::vector<std::uint32_t> batch_sizes(const RunConfig& config, std::uint64_t samples);

// Computes slots of each size for a fraction of a second. Stops at a size whose slots take long or use much
// of the machine's memory.
Result<std::vector<BatchTrial>> try_batches(Engine& engine, const std::shared_ptr<const Dataset>& data,
                                            std::uint64_t seed, std::span<const std::uint32_t> sizes);

struct BatchChoice {
  std::uint32_t batch = 0;
  std::uint32_t slots = 0;

  bool operator==(const BatchChoice&) const = default;
};
// The smallest size within a tenth of the best, and the slots that make about the global batch that was asked
// for, at least eight a step. `trials` must not be empty.
BatchChoice choose_batch(const RunConfig& config, std::span<const BatchTrial> trials);

}  // namespace w5xde
