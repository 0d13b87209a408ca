#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/mode.h"
#include "learn/global_batch.h"
#include "learn/optimizer.h"
#include "learn/schedule.h"
#include "run/choices.h"
#include "run/transport.h"
#include "w5xde/result.h"
#include "w5xde/sample_preparation.h"

namespace w5xde {

// What a run is: everything that its result depends on, and how it is kept. run.toml uses the same names.
struct RunConfig {
  std::string model;
  std::string data;
  std::string evaluation_data;  // empty: the data's own test split, if it has one
  double split = 0;             // the part of the samples that is held out for evaluation; 0: none
  std::string init;  // whose weights it begins with: a safetensors file or a run; empty: fresh ones
  Loss loss = Loss::automatic;
  std::optional<std::int64_t> ignore_index;  // targets that do not count
  SamplePreparation preparation;             // of the samples that are trained on
  bool normalize_measured = false;           // its means and deviations are to be those of the data
  std::string train;  // the parameters with names that this regular expression finds; empty: all

  Mode mode = Mode::sync;
  std::uint32_t batch = 32;
  bool batch_measured = false;   // `batch` and `slots` are to be chosen by measuring before the run begins
  std::uint32_t slots = 32;      // enough for a pool of some size, and few exchanges a slot
  std::uint32_t accumulate = 1;  // a step has this many times `slots`
  GrowthOptions growth;          // of the slots of a step
  std::uint64_t max_staleness = 64;  // async: older contributions count less, much older ones are refused

  // The first of these ends the run; 0: no such end. All 0: one epoch.
  std::uint64_t steps = 0;
  double epochs = 0;
  double seconds = 0;
  double target_accuracy = 0;  // of an evaluation; 0: no such end
  double target_loss = 0;      // the same
  std::uint64_t patience = 0;  // evaluations in a row without a lower loss; 0: no such end

  OptimizerOptions optimizer;
  Schedule schedule;     // without its end, which follows from the data: see schedule_over()
  double clip_norm = 0;  // 0: no clipping
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
  DType compute = DType::f32;  // what engines compute matrix products in; f32 or bf16
  Transport transport;
  bool turns = true;  // nodes that share a machine's cores take turns

  double checkpoint_seconds = 60;
  std::uint32_t keep = 3;
  std::uint64_t evaluate_every = 0;  // steps; 0: at the end only

  Status check() const;
  std::uint32_t step_slots() const { return slots * accumulate; }
  // Slots of the whole run; 0: no end in slots. Where steps grow, a number of steps is no end in slots.
  std::uint64_t slots_total(std::uint64_t slots_per_epoch) const;
  // Steps of the whole run, were all of the first size; 0: no end in steps.
  std::uint64_t steps_total(std::uint64_t slots_per_epoch) const;
  // Whether a part of a step can be taken before the rest is there. Not where a norm or a comparison of
  // halves needs the whole gradient, nor where numbers travel one by one.
  bool steps_by_parts() const {
    return mode == Mode::sync && clip_norm == 0 && !growth.grows() && !transport.generic();
  }
  Result<Schedule> schedule_over(std::uint64_t run_steps) const;

 private:
  Status check_ends() const;
  Status check_growth() const;
};

}  // namespace w5xde
