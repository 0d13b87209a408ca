#include "coordinator/lease_samples.h"

#include "base/errors.h"

namespace w5xde {

namespace {

constexpr std::uint32_t kEvaluationBatch = 256;

std::uint64_t first_slot_of(const Grant& grant, const StepSlots& steps) {
  return (grant.work == Work::train ? steps.first_slot_of(grant.step) : 0) + grant.block.first_slot;
}

}  // namespace

Result<std::unique_ptr<LeaseSamples>> LeaseSamples::make(const RunConfig& config,
                                                         const std::shared_ptr<const Dataset>& training,
                                                         std::shared_ptr<const Dataset> evaluation,
                                                         ThreadPool* pool) {
  std::unique_ptr<LeaseSamples> self(new LeaseSamples(config, training, pool));
  W5XDE_CHECK(self->check(config));
  if (!evaluation) return self;
  const bool generic = config.transport.generic();
  const std::uint32_t batch = batch_that_fits(*evaluation, kEvaluationBatch, generic);
  self->evaluation_size_ = LeaseSize::of(*evaluation, batch, generic);
  const std::uint64_t samples = evaluation->samples();
  self->evaluation_.emplace(std::move(evaluation),
                            Sampler::Options{.samples = samples, .batch = batch, .shuffle = false});
  return self;
}

LeaseSamples::LeaseSamples(const RunConfig& config, const std::shared_ptr<const Dataset>& training,
                           ThreadPool* pool)
    : transport_(config.transport),
      name_(config.data),
      training_(training,
                Sampler::Options{.samples = training->samples(), .batch = config.batch, .seed = config.seed},
                pool),
      size_(LeaseSize::of(*training, config.batch, config.transport.generic())) {}

// Leases are made no larger than a node takes. A single slot cannot be made smaller.
Status LeaseSamples::check(const RunConfig& config) const {
  if (!size_.fits()) {
    return invalid(
        "a batch of {} samples is {} MiB, and {} MiB are the most that a node is sent at once. Lower "
        "--batch, and raise --accumulate for the same global batch",
        config.batch, size_.payload_bytes_per_slot / kMiB, LeaseSize::kPayloadBytesMax / kMiB);
  }
  if (config.transport.sample_cache == SampleCaching::on && !size_.fits_with_numbers()) {
    return invalid(
        "with --sample-cache on, the numbers of a batch's {} samples are more than a node is sent at once. "
        "Lower --batch, and raise --accumulate for the same global batch, or use --sample-cache off",
        config.batch);
  }
  return {};
}

std::uint32_t LeaseSamples::evaluation_slots() const {
  return evaluation_ ? static_cast<std::uint32_t>(evaluation_->sampler().slots_per_epoch()) : 0;
}

std::uint32_t LeaseSamples::slots_max(Work work) const {
  return (work == Work::train ? size_ : evaluation_size_).slots_max(may_use_cache());
}

bool LeaseSamples::uses_cache(bool local, double bytes_per_second) const {
  return may_use_cache() && transport_.keeps_samples(local, bytes_per_second);
}

std::uint64_t LeaseSamples::bytes() const {
  const Dataset& data = training_.dataset();
  return data.samples() * (data.inputs().sample_bytes() + data.targets().sample_bytes());
}

Status LeaseSamples::check_finite(const StepSlots& steps, std::uint64_t step, SlotBlock block) {
  const auto bad = training_.first_not_finite(steps.first_slot_of(step) + block.first_slot, block.slot_count);
  if (!bad) return {};
  return invalid(
      "sample {} of {} has NaN or infinity in its {}, so no gradient of it is finite (samples count from 0). "
      "Mend the data or leave the sample out, and start the run again: it goes on from its last checkpoint",
      training_.dataset().number_in_whole(bad->number), name_, bad->is_target ? "target" : "inputs");
}

Batch LeaseSamples::make_lacking(const Grant& grant, const StepSlots& steps, KeptSamples& kept) {
  return batches_of(grant.work)
      .make_lacking(first_slot_of(grant, steps), grant.block.slot_count, grant.work, kept);
}

// A step's samples were put together when the step before was leased.
Batch LeaseSamples::make_batch(const Grant& grant, const StepSlots& steps) {
  if (grant.work == Work::train)
    training_.prepare(steps.first_slot_of(grant.step + 1), steps.slots_of(grant.step + 1));
  return batches_of(grant.work).make(first_slot_of(grant, steps), grant.block.slot_count);
}

}  // namespace w5xde
