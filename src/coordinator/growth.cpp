// How the global batch of a run grows, where it was asked to: what learn/global_batch.h decides, done.
#include <cmath>

#include "coordinator/coordinator.h"

namespace w5xde {

Status Coordinator::begin_growth(const CheckpointInfo& from) {
  const RunConfig& config = options_.config;
  const BatchGrowthState before = from.batch_growth.value_or(BatchGrowthState());
  if (!config.growth.grows()) {
    if (before.growths.empty()) return {};
    return invalid(
        "this run's global batch has grown, and its steps would not fit any more; use --global-batch auto");
  }
  step_.set_growth({.growth = config.growth,
                    .batch = config.batch,
                    .slots = config.step_slots(),
                    .optimizer = config.optimizer},
                   before);
  for (const BatchGrowth& growth : before.growths)
    round_->grow(growth.step, step_.global_batch()->slots_of(growth));
  return {};
}

void Coordinator::begin_step() {
  step_.begin(round_->slots_of(round_->front_step()), learner_->floats(), learner_->parameters()->floats());
}

// The step before the front was committed.
void Coordinator::grow() {
  if (const auto growth = step_.committed(round_->front_step() - 1)) {
    round_->grow(growth->step, step_.global_batch()->slots_of(*growth));
    tally_.event("the global batch grows from " + to_text(*growth));
  }
}

// The schedule follows the data: it counts steps of the first size, `step_slots()` slots each. Updates of an
// async run are smaller than that, steps that have grown are larger. Only a run that grows and ends after so
// many steps counts those: nobody knows how many slots they will have.
void Coordinator::set_pace() {
  const RunConfig& config = options_.config;
  const StepSlots& steps = round_->step_slots();
  const std::uint64_t step = round_->front_step();
  const std::uint64_t slot =
      config.mode == Mode::async ? tally_.slots_committed() : steps.first_slot_of(step);
  const bool by_slots =
      !step_.global_batch() || config.slots_total(samples_->sampler().slots_per_epoch()) > 0;
  learner_->set_pace(
      {.schedule_step = by_slots ? slot / config.step_slots() : step,
       .factor = step_.global_batch() ? step_.global_batch()->rate_factor(steps.full_slots_of(step)) : 1});
}

void Coordinator::report_growth(Summary& summary) const {
  const std::uint64_t last = std::max<std::uint64_t>(tally_.step(), 1) - 1;
  summary.batch = options_.config.batch;
  summary.global_batch = std::uint64_t{round_->step_slots().full_slots_of(last)} * options_.config.batch;
  if (const auto* growing = step_.global_batch())
    summary.batch_growth = {growing->noise_scale(), growing->growths()};
}

void Coordinator::report_growth(StatusReport& report) const {
  report.batch = options_.config.batch;
  report.global_batch =
      std::uint64_t{round_->step_slots().full_slots_of(round_->front_step())} * options_.config.batch;
  if (!step_.global_batch()) return;
  const double noise_scale = step_.global_batch()->noise_scale();
  report.noise_scale = std::isnan(noise_scale) ? 0 : noise_scale;
}

}  // namespace w5xde
