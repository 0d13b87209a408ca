#include "coordinator/lease_samples.h"

#include <algorithm>
#include <bit>

#include "base/errors.h"

namespace w5xde {

namespace {

constexpr std::uint32_t kEvaluationBatch = 256;
// Copying these into new memory takes a few milliseconds.
constexpr std::uint64_t kTogetherBytesMax = 4 * kMiB;

std::uint64_t first_slot_of(const Grant& grant, const StepSlots& steps) {
  return (grant.work == Work::train ? steps.first_slot_of(grant.step) : 0) + grant.block.first_slot;
}

}  // namespace

Result<std::unique_ptr<LeaseSamples>> LeaseSamples::make(const RunConfig& config,
                                                         const std::shared_ptr<const Dataset>& training,
                                                         std::shared_ptr<const Dataset> evaluation,
                                                         const Beside& beside) {
  std::unique_ptr<LeaseSamples> self(new LeaseSamples(config, training, beside.pool));
  W5XDE_CHECK(self->check(config));
  self->training_.gather_beside(beside.loop, beside.gathered);
  if (!evaluation) return self;
  const bool generic = config.transport.generic();
  const std::uint32_t batch = batch_that_fits(*evaluation, kEvaluationBatch, generic);
  self->evaluation_size_ = LeaseSize::of(*evaluation, batch, generic);
  const std::uint64_t samples = evaluation->samples();
  self->evaluation_.emplace(std::move(evaluation),
                            Sampler::Options{.samples = samples, .batch = batch, .shuffle = false},
                            beside.pool);
  self->evaluation_->gather_beside(beside.loop, beside.gathered);
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
  const LeaseSize& size = work == Work::train ? size_ : evaluation_size_;
  const std::uint32_t slots = size.slots_max(may_use_cache());
  if (!data_of(work).gathers_slowly()) return slots;
  // What was gathered beside the loop is put together on it.
  const std::uint64_t quick = kTogetherBytesMax / std::max<std::uint64_t>(size.payload_bytes_per_slot, 1);
  return std::min(slots,
                  std::bit_floor(static_cast<std::uint32_t>(std::clamp<std::uint64_t>(quick, 1, 1u << 31))));
}

bool LeaseSamples::uses_cache(bool local, double bytes_per_second) const {
  return may_use_cache() && transport_.keeps_samples(local, bytes_per_second);
}

std::uint64_t LeaseSamples::bytes() const {
  return training_.dataset().samples() * training_.dataset().sample_bytes();
}

Status LeaseSamples::check_finite(const StepSlots& steps, std::uint64_t step, SlotBlock block) {
  const std::uint64_t first = steps.first_slot_of(step) + block.first_slot;
  W5XDE_TRY(const auto bad, training_.first_not_finite(first, block.slot_count));
  if (!bad) return {};
  return invalid(
      "sample {} of {} has NaN or infinity in its {}, so no gradient of it is finite (samples count from 0). "
      "Mend the data or leave the sample out, and start the run again: it goes on from its last checkpoint",
      training_.dataset().number_in_whole(bad->number), name_, bad->is_target ? "target" : "inputs");
}

Result<Batch> LeaseSamples::make_lacking(const Grant& grant, const StepSlots& steps, KeptSamples& kept) {
  W5XDE_TRY(Batch batch,
            batches_of(grant.work)
                .make_lacking(first_slot_of(grant, steps), grant.block.slot_count, grant.work, kept));
  // Once nodes have all samples, none needs to be gathered any more.
  const auto lacks = [](const SampleNumber& number) { return number.kind != SampleNumber::Kind::kept; };
  if (data_of(grant.work).gathers_slowly() && std::ranges::any_of(batch.numbers, lacks))
    prepare_after(grant, steps);
  return batch;
}

bool LeaseSamples::ready(const Grant& grant, const StepSlots& steps, const KeptSamples* kept) {
  return batches_of(grant.work).ready(first_slot_of(grant, steps), grant.block.slot_count, grant.work, kept);
}

// What comes behind it, to the end of the next step or of the evaluation.
void LeaseSamples::prepare_after(const Grant& grant, const StepSlots& steps) {
  const std::uint64_t next = first_slot_of(grant, steps) + grant.block.slot_count;
  const bool train = grant.work == Work::train;
  const std::uint64_t end = train ? steps.first_slot_of(grant.step + 2) : evaluation_slots();
  if (next < end) batches_of(grant.work).prepare(next, static_cast<std::uint32_t>(end - next));
}

// A step's samples were put together when the step before was leased.
Result<Batch> LeaseSamples::make_batch(const Grant& grant, const StepSlots& steps) {
  if (data_of(grant.work).gathers_slowly()) {
    prepare_after(grant, steps);
  } else if (grant.work == Work::train) {
    training_.prepare(steps.first_slot_of(grant.step + 1), steps.slots_of(grant.step + 1));
  }
  return batches_of(grant.work).make(first_slot_of(grant, steps), grant.block.slot_count);
}

}  // namespace w5xde
