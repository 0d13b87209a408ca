#pragma once

#include <cstdint>
#include <string>

#include "base/mode.h"
#include "learn/global_batch.h"
#include "learn/optimizer.h"
#include "learn/schedule.h"
#include "run/transport.h"
#include "w5xde/result.h"

namespace w5xde {

// What a run is: everything that its result depends on, and how it is kept. run.toml has these by the same
// names.
struct RunConfig {
  std::string model;
  std::string data;
  std::string evaluation_data;  // empty: the data's own test split, if it has one
  std::string loss = "auto";    // auto: what the model and the data ask for (ModelOptions::loss)

  Mode mode = Mode::sync;
  std::uint32_t batch = 32;
  bool batch_measured = false;   // `batch` and `slots` are to be chosen by measuring before the run begins
  std::uint32_t slots = 32;      // enough for a pool of some size, and few exchanges a slot
  std::uint32_t accumulate = 1;  // a step has this many times `slots`
  GrowthOptions growth;          // of the slots of a step
  std::uint64_t max_staleness = 64;  // async: older contributions count less, much older ones are refused

  // Whichever comes first; 0: no such end. All 0: one epoch.
  std::uint64_t steps = 0;
  double epochs = 0;
  double seconds = 0;
  double target_accuracy = 0;  // of an evaluation; 0: no such end

  OptimizerOptions optimizer;
  std::string schedule = "constant";
  double clip_norm = 0;  // 0: no clipping
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
  Transport transport;
  bool turns = true;  // nodes that share a machine's cores take turns

  double checkpoint_seconds = 60;
  std::uint32_t keep = 3;
  std::uint64_t evaluate_every = 0;  // steps; 0: at the end only

  Status check() const;
  std::uint32_t step_slots() const { return slots * accumulate; }
  // Of the whole run, when an epoch has so many; 0: no end in slots. Where steps grow, an end in steps is
  // none.
  std::uint64_t slots_total(std::uint64_t slots_per_epoch) const;

 private:
  Status check_growth() const;
};

}  // namespace w5xde
