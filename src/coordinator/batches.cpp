#include "coordinator/batches.h"

#include <algorithm>
#include <cmath>

namespace w5xde {

namespace {

constexpr std::size_t kKeptMax = 64;
// The step being computed, the one whose leases are out ahead, the one after; and one for stragglers.
constexpr std::size_t kStocksMax = 4;
constexpr std::uint64_t kStockBytesMax = 32 * kMiB;
// Below this a hop to another thread costs more than the copying.
constexpr std::uint64_t kHopBytes = 256 * kKiB;

TensorDescriptor descriptor_of(const Dataset::Field& field, std::uint64_t samples) {
  std::array<std::int64_t, kRankMax + 1> dims{};
  dims[0] = static_cast<std::int64_t>(samples);
  std::ranges::copy(field.shape.dims(), dims.begin() + 1);
  return {.dtype = field.dtype, .shape = Shape::make({dims.data(), field.shape.rank() + 1}).value()};
}

}  // namespace

// What is being filled looks at the dataset.
Batches::~Batches() {
  for (auto& [first, stock] : stocks_) {
    if (stock.filled.valid()) stock.filled.wait();
  }
}

std::shared_ptr<AlignedBuffer> Batches::take_memory() {
  const auto free = std::ranges::find_if(made_, [](const auto& memory) { return memory.use_count() == 1; });
  if (free != made_.end()) return *free;
  auto memory = std::make_shared<AlignedBuffer>();
  if (made_.size() < kKeptMax) made_.push_back(memory);
  return memory;
}

std::uint64_t Batches::targets_at(std::uint64_t samples) const {
  return align_up(samples * dataset_->inputs().sample_bytes(), kPayloadAlignment);
}

Batches::Stock Batches::stock_of(std::uint64_t first, std::uint32_t count) {
  Stock stock{.first = first, .end = first + count};
  stock.samples = sampler_.samples_before(stock.end) - sampler_.samples_before(first);
  return stock;
}

void Batches::fill(Stock& stock, ThreadPool* pool) {
  const std::uint64_t bytes = targets_at(stock.samples) + stock.samples * dataset_->targets().sample_bytes();
  stock.memory = take_memory();
  std::byte* memory = stock.memory->take(bytes).data();
  const MutableBytes inputs(memory, stock.samples * dataset_->inputs().sample_bytes());
  const MutableBytes targets(memory + targets_at(stock.samples),
                             stock.samples * dataset_->targets().sample_bytes());
  std::vector<std::uint32_t> numbers;
  numbers.reserve(stock.samples);
  for (std::uint64_t slot = stock.first; slot < stock.end; ++slot) {
    const auto of_slot = sampler_.samples_of(slot);
    numbers.insert(numbers.end(), of_slot.begin(), of_slot.end());
  }
  if (pool == nullptr || bytes < kHopBytes) return dataset_->gather(numbers, inputs, targets);
  const auto filled = std::make_shared<std::promise<void>>();
  stock.filled = filled->get_future();
  pool->submit([filled, dataset = dataset_, memory = stock.memory, numbers = std::move(numbers), inputs,
                targets]() mutable {
    dataset->gather(numbers, inputs, targets);
    memory.reset();  // before anybody hears of it: who finds it free may use it again
    filled->set_value();
  });
}

void Batches::prepare(std::uint64_t first, std::uint32_t count) {
  if (count == 0 || stocks_.contains(first)) return;
  Stock stock = stock_of(first, count);
  const std::uint64_t sample_bytes = dataset_->inputs().sample_bytes() + dataset_->targets().sample_bytes();
  if (stock.samples * sample_bytes > kStockBytesMax) return;
  fill(stock, pool_);
  stocks_.emplace(first, std::move(stock));
  if (stocks_.size() <= kStocksMax) return;
  const auto oldest = stocks_.begin();
  if (oldest->second.filled.valid()) oldest->second.filled.wait();
  stocks_.erase(oldest);
}

Batch Batches::make_lacking(std::uint64_t first, std::uint32_t count, Work work, KeptSamples& kept) {
  Batch batch;
  const std::uint64_t sample_bytes = dataset_->inputs().sample_bytes() + dataset_->targets().sample_bytes();
  std::vector<std::uint32_t> lacking;
  for (std::uint32_t i = 0; i < count; ++i) {
    batch.slot_samples.push_back(sampler_.count_of(first + i));
    for (const std::uint32_t number : sampler_.samples_of(first + i)) {
      batch.numbers.push_back({number, kept.kind_of(work, number, sample_bytes)});
      if (batch.numbers.back().kind != SampleNumber::Kind::kept) lacking.push_back(number);
    }
  }
  batch.tensors = {descriptor_of(dataset_->inputs(), lacking.size()),
                   descriptor_of(dataset_->targets(), lacking.size())};
  const auto memory = take_memory();
  const std::uint64_t targets_at_byte = targets_at(lacking.size());
  const MutableBytes bytes = memory->take(targets_at_byte + batch.tensors[1].byte_count());
  const MutableBytes inputs = bytes.first(batch.tensors[0].byte_count());
  const MutableBytes targets = bytes.subspan(targets_at_byte);
  dataset_->gather(lacking, inputs, targets);
  batch.payload = {TensorView(inputs, batch.tensors[0].dtype, batch.tensors[0].shape),
                   TensorView(targets, batch.tensors[1].dtype, batch.tensors[1].shape)};
  batch.memory = memory;
  return batch;
}

Batch Batches::make(std::uint64_t first, std::uint32_t count) {
  Stock wanted = stock_of(first, count);
  auto holds = stocks_.upper_bound(first);
  const bool prepared = holds != stocks_.begin() && wanted.end <= (--holds)->second.end;
  if (!prepared) fill(wanted, nullptr);
  const Stock& stock = prepared ? holds->second : wanted;
  if (stock.filled.valid()) stock.filled.wait();

  Batch batch{.tensors = {descriptor_of(dataset_->inputs(), wanted.samples),
                          descriptor_of(dataset_->targets(), wanted.samples)},
              .memory = stock.memory};
  const std::uint64_t skipped = sampler_.samples_before(first) - sampler_.samples_before(stock.first);
  const std::byte* inputs = stock.memory->data() + skipped * dataset_->inputs().sample_bytes();
  const std::byte* targets =
      stock.memory->data() + targets_at(stock.samples) + skipped * dataset_->targets().sample_bytes();
  batch.payload = {
      TensorView({inputs, batch.tensors[0].byte_count()}, batch.tensors[0].dtype, batch.tensors[0].shape),
      TensorView({targets, batch.tensors[1].byte_count()}, batch.tensors[1].dtype, batch.tensors[1].shape)};
  for (std::uint32_t i = 0; i < count; ++i) batch.slot_samples.push_back(sampler_.count_of(first + i));
  return batch;
}

std::optional<Batches::NotFinite> Batches::first_not_finite(std::uint64_t first, std::uint32_t count) {
  const auto finite = [](Bytes row) {
    for (; !row.empty(); row = row.subspan(sizeof(float))) {
      if (!std::isfinite(load<float>(row.data()))) return false;
    }
    return true;
  };
  for (std::uint64_t slot = first; slot < first + count; ++slot) {
    const Batch batch = make(slot, 1);
    const auto numbers = sampler_.samples_of(slot);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (const TensorView& tensor : batch.payload) {
        if (tensor.dtype() != DType::f32) continue;
        const std::uint64_t row = tensor.byte_count() / numbers.size();
        const bool is_target = &tensor == &batch.payload.back();
        if (!finite(tensor.bytes().subspan(i * row, row))) return NotFinite{numbers[i], is_target};
      }
    }
  }
  return std::nullopt;
}

}  // namespace w5xde
