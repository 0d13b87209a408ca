#include "coordinator/batches.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace w5xde {

namespace {

constexpr std::size_t kKeptMax = 64;

TensorDescriptor descriptor_of(const Dataset::Field& field, std::uint64_t samples) {
  std::array<std::int64_t, kRankMax + 1> dims{};
  dims[0] = static_cast<std::int64_t>(samples);
  std::ranges::copy(field.shape.dims(), dims.begin() + 1);
  return {.dtype = field.dtype, .shape = Shape::make({dims.data(), field.shape.rank() + 1}).value()};
}

}  // namespace

std::shared_ptr<Batch> Batches::take() {
  const auto free = std::ranges::find_if(made_, [](const auto& batch) { return batch.use_count() == 1; });
  if (free != made_.end()) return *free;
  auto batch = std::make_shared<Batch>();
  if (made_.size() < kKeptMax) made_.push_back(batch);
  return batch;
}

std::shared_ptr<const Batch> Batches::make(std::uint64_t first, std::uint32_t count) {
  const auto batch = take();
  batch->slot_samples.clear();
  std::uint64_t samples = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    batch->slot_samples.push_back(sampler_.count_of(first + i));
    samples += batch->slot_samples.back();
  }
  batch->tensors = {descriptor_of(dataset_->inputs(), samples), descriptor_of(dataset_->targets(), samples)};
  batch->bytes = payload_bytes_of(batch->tensors);
  std::byte* memory = batch->memory.take(batch->bytes).data();
  const std::uint64_t inputs_bytes = batch->tensors[0].byte_count();
  const std::uint64_t targets_at = align_up(inputs_bytes, kPayloadAlignment);
  std::memset(memory + inputs_bytes, 0, targets_at - inputs_bytes);
  const MutableBytes inputs(memory, inputs_bytes);
  const MutableBytes targets(memory + targets_at, batch->tensors[1].byte_count());
  std::uint64_t at = 0;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto numbers = sampler_.samples_of(first + i);
    const std::uint64_t input_bytes = dataset_->inputs().sample_bytes();
    const std::uint64_t target_bytes = dataset_->targets().sample_bytes();
    dataset_->gather(numbers, inputs.subspan(at * input_bytes, numbers.size() * input_bytes),
                     targets.subspan(at * target_bytes, numbers.size() * target_bytes));
    at += numbers.size();
  }
  return batch;
}

}  // namespace w5xde
