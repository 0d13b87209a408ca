#include "coordinator/batches.h"

#include <algorithm>
#include <cmath>
#include <cstring>

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

// A place for each tensor of a payload at `memory`, which is aligned, and how long the payload is.
struct Places {
  std::vector<MutableBytes> tensors;
  std::uint64_t bytes = 0;

  Places(const TensorList& list, std::byte* memory) {
    for (const TensorDescriptor& tensor : list) {
      bytes = align_up(bytes, kPayloadAlignment);
      tensors.emplace_back(memory + bytes, tensor.byte_count());
      bytes += tensor.byte_count();
    }
  }
  std::span<const MutableBytes> inputs() const { return std::span(tensors).first(tensors.size() - 1); }
  MutableBytes targets() const { return tensors.back(); }
};

}  // namespace

SlotSamples Batch::samples() const {
  const auto tensor_of = [](const TensorView& view) {
    return SampleTensor{view.bytes(), view.dtype(), view.shape()};
  };
  SlotSamples samples;
  for (std::size_t i = 0; i + 1 < payload.size(); ++i) samples.inputs.push_back(tensor_of(payload[i]));
  samples.targets = tensor_of(payload.back());
  return samples;
}

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

TensorList Batches::describe(std::uint64_t samples) const {
  TensorList tensors;
  tensors.reserve(dataset_->inputs().size() + 1);
  for (const Dataset::Field& input : dataset_->inputs()) tensors.push_back(descriptor_of(input, samples));
  tensors.push_back(descriptor_of(dataset_->targets(), samples));
  return tensors;
}

Batches::Stock Batches::stock_of(std::uint64_t first, std::uint32_t count) {
  Stock stock{.first = first, .end = first + count};
  stock.samples = sampler_.samples_before(stock.end) - sampler_.samples_before(first);
  return stock;
}

Status Batches::fill(Stock& stock, ThreadPool* pool) {
  const TensorList tensors = describe(stock.samples);
  stock.memory = take_memory();
  Places places(tensors, stock.memory->take(payload_bytes_of(tensors)).data());
  std::vector<std::uint32_t> numbers;
  numbers.reserve(stock.samples);
  for (std::uint64_t slot = stock.first; slot < stock.end; ++slot) {
    const auto of_slot = sampler_.samples_of(slot);
    numbers.insert(numbers.end(), of_slot.begin(), of_slot.end());
  }
  if (pool == nullptr || places.bytes < kHopBytes)
    return dataset_->gather(numbers, places.inputs(), places.targets());
  const auto filled = std::make_shared<std::promise<Status>>();
  stock.filled = filled->get_future();
  pool->submit([filled, dataset = dataset_, memory = stock.memory, numbers = std::move(numbers),
                places = std::move(places)]() mutable {
    Status gathered = dataset->gather(numbers, places.inputs(), places.targets());
    memory.reset();  // before anybody hears of it: who finds it free may use it again
    filled->set_value(std::move(gathered));
  });
  return {};
}

void Batches::gather_beside(Loop& loop, std::function<void()> gathered) {
  if (!dataset_->gathers_slowly()) return;
  gathered_ = std::make_unique<GatheredSlots>(dataset_, options_, loop, pool_, std::move(gathered));
}

bool Batches::ready(std::uint64_t first, std::uint32_t count, Work work, const KeptSamples* kept) {
  if (!gathered_) return true;
  bool all = true;
  for (std::uint64_t slot = first; slot < first + count; ++slot) {
    const bool has_all = kept != nullptr && std::ranges::all_of(sampler_.samples_of(slot), [&](auto number) {
                           return kept->has(work, number);
                         });
    // All of them are asked for, so that they come one after the other.
    if (!has_all) all = gathered_->want(slot) && all;
  }
  return all;
}

void Batches::prepare(std::uint64_t first, std::uint32_t count) {
  if (gathered_) return gathered_->prepare(first, first + count);
  if (count == 0 || stocks_.contains(first)) return;
  Stock stock = stock_of(first, count);
  if (stock.samples * dataset_->sample_bytes() > kStockBytesMax) return;
  if (!fill(stock, pool_).ok()) return;
  stocks_.emplace(first, std::move(stock));
  if (stocks_.size() <= kStocksMax) return;
  const auto oldest = stocks_.begin();
  if (oldest->second.filled.valid()) oldest->second.filled.wait();
  stocks_.erase(oldest);
}

Result<Batch> Batches::make_lacking(std::uint64_t first, std::uint32_t count, Work work, KeptSamples& kept) {
  Batch batch;
  const std::uint64_t sample_bytes = dataset_->sample_bytes();
  std::vector<std::uint32_t> lacking;
  for (std::uint32_t i = 0; i < count; ++i) {
    batch.slot_samples.push_back(sampler_.count_of(first + i));
    for (const std::uint32_t number : sampler_.samples_of(first + i)) {
      batch.numbers.push_back({number, kept.kind_of(work, number, sample_bytes)});
      if (batch.numbers.back().kind != SampleNumber::Kind::kept) lacking.push_back(number);
    }
  }
  batch.tensors = describe(lacking.size());
  const auto memory = take_memory();
  const MutableBytes bytes = memory->take(payload_bytes_of(batch.tensors));
  const Places places(batch.tensors, bytes.data());
  if (gathered_) {
    W5XDE_CHECK(gather_lacking(first, batch, places.tensors));
  } else {
    W5XDE_CHECK(dataset_->gather(lacking, places.inputs(), places.targets()));
  }
  batch.payload = views_of(batch.tensors, bytes);
  batch.memory = memory;
  return batch;
}

// Those of the batch's samples that the node has not got, from slots that were gathered beside the loop.
Status Batches::gather_lacking(std::uint64_t first, const Batch& batch,
                               std::span<const MutableBytes> tensors) {
  std::vector<MutableBytes> left(tensors.begin(), tensors.end());
  std::size_t next = 0;
  for (const std::uint32_t samples : batch.slot_samples) {
    const auto slot = gathered_->take(first++);
    if (slot) W5XDE_CHECK(Status(slot->status));
    for (std::size_t at = 0; at < samples; ++at, ++next) {
      const SampleNumber& number = batch.numbers[next];
      if (number.kind == SampleNumber::Kind::kept) continue;
      std::vector<MutableBytes> row;
      for (std::size_t i = 0; i < left.size(); ++i) {
        const std::uint64_t bytes =
            (i + 1 < left.size() ? dataset_->inputs()[i] : dataset_->targets()).sample_bytes();
        row.push_back(left[i].first(bytes));
        left[i] = left[i].subspan(bytes);
        if (slot) std::memcpy(row[i].data(), slot->tensors[i].data() + at * bytes, bytes);
      }
      if (slot) continue;
      W5XDE_CHECK(dataset_->gather({&number.number, 1}, std::span(row).first(row.size() - 1), row.back()));
    }
  }
  return {};
}

std::optional<Result<Batch>> Batches::make_gathered(std::uint64_t first, std::uint32_t count) {
  std::vector<std::shared_ptr<const GatheredSlots::Slot>> slots;
  Batch batch;
  std::uint64_t samples = 0;
  for (std::uint64_t slot = first; slot < first + count; ++slot) {
    slots.push_back(gathered_->take(slot));
    if (!slots.back()) return std::nullopt;
    if (!slots.back()->status.ok()) return slots.back()->status.error();
    batch.slot_samples.push_back(sampler_.count_of(slot));
    samples += batch.slot_samples.back();
  }
  batch.tensors = describe(samples);
  if (count == 1) {  // which may be large: it is not copied
    for (std::size_t i = 0; i < batch.tensors.size(); ++i)
      batch.payload.emplace_back(slots[0]->tensors[i], batch.tensors[i].dtype, batch.tensors[i].shape);
    batch.memory = slots[0];
    return batch;
  }
  const auto memory = take_memory();
  const MutableBytes bytes = memory->take(payload_bytes_of(batch.tensors));
  const Places places(batch.tensors, bytes.data());
  for (std::size_t i = 0; i < batch.tensors.size(); ++i) {
    std::byte* to = places.tensors[i].data();
    for (const auto& slot : slots) to = std::ranges::copy(slot->tensors[i], to).out;
  }
  batch.payload = views_of(batch.tensors, bytes);
  batch.memory = memory;
  return batch;
}

Result<Batch> Batches::make(std::uint64_t first, std::uint32_t count) {
  if (gathered_) {
    if (auto made = make_gathered(first, count)) return *std::move(made);
  }
  Stock wanted = stock_of(first, count);
  auto holds = stocks_.upper_bound(first);
  const bool prepared = holds != stocks_.begin() && wanted.end <= (--holds)->second.end;
  if (!prepared) W5XDE_CHECK(fill(wanted, nullptr));
  const Stock& stock = prepared ? holds->second : wanted;
  if (stock.filled.valid()) W5XDE_CHECK(Status(stock.filled.get()));

  Batch batch{.tensors = describe(wanted.samples), .memory = stock.memory};
  const std::uint64_t skipped = sampler_.samples_before(first) - sampler_.samples_before(stock.first);
  const Places places(describe(stock.samples), stock.memory->data());
  for (std::size_t i = 0; i < batch.tensors.size(); ++i) {
    const TensorDescriptor& tensor = batch.tensors[i];
    const Dataset::Field& field = i < dataset_->inputs().size() ? dataset_->inputs()[i] : dataset_->targets();
    const Bytes rows = places.tensors[i];
    batch.payload.emplace_back(rows.subspan(skipped * field.sample_bytes(), tensor.byte_count()),
                               tensor.dtype, tensor.shape);
  }
  for (std::uint32_t i = 0; i < count; ++i) batch.slot_samples.push_back(sampler_.count_of(first + i));
  return batch;
}

Result<std::optional<Batches::NotFinite>> Batches::first_not_finite(std::uint64_t first,
                                                                    std::uint32_t count) {
  const auto finite = [](Bytes row) {
    for (; !row.empty(); row = row.subspan(sizeof(float))) {
      if (!std::isfinite(load<float>(row.data()))) return false;
    }
    return true;
  };
  const TensorList tensors = describe(1);
  if (std::ranges::count(tensors, DType::f32, &TensorDescriptor::dtype) == 0)
    return std::optional<NotFinite>();
  for (std::uint64_t slot = first; slot < first + count; ++slot) {
    W5XDE_TRY(const Batch batch, make(slot, 1));
    const auto numbers = sampler_.samples_of(slot);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      for (const TensorView& tensor : batch.payload) {
        if (tensor.dtype() != DType::f32) continue;
        const std::uint64_t row = tensor.byte_count() / numbers.size();
        const bool is_target = &tensor == &batch.payload.back();
        if (!finite(tensor.bytes().subspan(i * row, row)))
          return std::optional(NotFinite{numbers[i], is_target});
      }
    }
  }
  return std::optional<NotFinite>();
}

}  // namespace w5xde
