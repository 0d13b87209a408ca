#include "node/computation.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <utility>

#include "base/errors.h"
#include "learn/seeds.h"

namespace w5xde {

namespace {

// The samples `first` … of a tensor of samples.
SampleTensor rows_of(const TensorDescriptor& tensor, Bytes bytes, std::uint64_t first, std::uint32_t count) {
  std::array<std::int64_t, kRankMax> dims{};
  std::ranges::copy(tensor.shape.dims(), dims.begin());
  dims[0] = count;
  const Shape shape = Shape::make({dims.data(), tensor.shape.rank()}).value();
  const std::uint64_t row_bytes =
      tensor.shape[0] == 0 ? 0 : tensor.byte_count() / static_cast<std::uint64_t>(tensor.shape[0]);
  return {bytes.subspan(first * row_bytes, count * row_bytes), tensor.dtype, shape};
}

std::vector<Slot> slots_of(const Lease& lease, Bytes payload) {
  const auto views = views_of(lease.tensors, payload);
  std::vector<Slot> slots;
  slots.reserve(lease.slot_samples.size());
  std::uint64_t first = 0;
  for (const std::uint32_t count : lease.slot_samples) {
    const auto slot = static_cast<std::uint32_t>(lease.block.first_slot + slots.size());
    Slot& made = slots.emplace_back();
    made.seed = slot_seed(lease.seed, slot);
    for (std::size_t i = 0; i + 1 < views.size(); ++i)
      made.samples.inputs.push_back(rows_of(lease.tensors[i], views[i].bytes(), first, count));
    made.samples.targets = rows_of(lease.tensors.back(), views.back().bytes(), first, count);
    first += count;
  }
  return slots;
}

}  // namespace

std::vector<SlotBlock> blocks_for_lanes(std::uint32_t slots, std::uint32_t lanes) {
  if (lanes == 1) return {{0, slots}};
  std::vector<SlotBlock> blocks;
  std::uint32_t first = 0;
  while (first < slots) {
    // The largest power of two that gives every lane a block. Sizes only shrink, so that each block is
    // aligned. The last blocks may be fewer than the lanes.
    const std::uint32_t size = std::bit_floor(std::max(1u, (slots - first) / lanes));
    for (std::uint32_t lane = 0; lane < lanes && first < slots; ++lane, first += size)
      blocks.push_back({first, size});
  }
  return blocks;
}

Result<Computed> Computation::run(const Lease& lease, Bytes payload, std::span<const float> state,
                                  std::uint32_t lanes, Reduction::Buffer into) {
  const Instant begun = clock_.now();
  const auto slots = slots_of(lease, payload);
  Computed computed;
  if (another_)
    computed.lanes = std::clamp(static_cast<std::uint32_t>(slots.size()), 1u, std::max(1u, lanes));
  W5XDE_CHECK(open_lanes(computed.lanes));
  W5XDE_CHECK(lease.work == Work::train ? train(slots, state, std::move(into), computed)
                                        : evaluate(slots, state, computed));
  computed.busy = clock_.now() - begun;
  return computed;
}

Status Computation::open_lanes(std::uint32_t lanes) {
  while (engines_.size() < lanes) {
    W5XDE_TRY(others_.emplace_back(), another_());
    engines_.push_back(others_.back().get());
  }
  if (lanes > 1 && (!pool_ || pool_->size() + 1 < lanes)) pool_ = std::make_unique<ThreadPool>(lanes - 1);
  return {};
}

void Computation::prepare(std::uint32_t lanes, std::uint32_t buffers) {
  // If an engine cannot be made, a lease will fail too, and say why.
  if (lanes > 1 && (!another_ || !open_lanes(lanes).ok())) return;
  std::vector<Reduction::Buffer> touched(buffers);
  for (auto& buffer : touched) {
    buffer = take_buffer();
    std::memset(buffer->data(), 0, floats_ * sizeof(float));
  }
  for (auto& buffer : touched) give_back(std::move(buffer));
}

// A lane that is free takes the next task.
Status Computation::in_lanes(std::uint32_t lanes, std::size_t tasks, const Task& task) {
  std::atomic<std::size_t> next = 0;
  std::vector<Status> ended(lanes);
  const auto lane = [&](std::size_t number) {
    for (std::size_t i = next++; i < tasks && ended[number].ok(); i = next++)
      ended[number] = task(*engines_[number], i);
  };
  if (lanes == 1) {
    lane(0);
  } else {
    pool_->for_each(lanes, lane);
  }
  for (Status& status : ended) W5XDE_CHECK(std::move(status));
  return {};
}

Status Computation::train(std::span<const Slot> slots, std::span<const float> state, Reduction::Buffer into,
                          Computed& computed) {
  const auto count = static_cast<std::uint32_t>(slots.size());
  const std::vector<SlotBlock> blocks = blocks_for_lanes(count, computed.lanes);
  std::vector<Sum> parts(blocks.size());
  // Along the tree, what is on the right is added to what is on the left: the sum is where the first slot is.
  const AlignedBuffer* const wanted = into.get();
  W5XDE_CHECK(in_lanes(computed.lanes, parts.size(), [&](Engine& engine, std::size_t number) -> Status {
    const SlotBlock block = blocks[number];
    W5XDE_TRY(parts[number], add_up(engine, slots.subspan(block.first_slot, block.slot_count), state,
                                    number == 0 ? std::move(into) : nullptr));
    return {};
  }));
  Reduction reduction(count, floats_);
  std::vector<Reduction::Buffer> spare;
  for (std::size_t i = 0; i < parts.size(); ++i)
    W5XDE_CHECK(reduction.add(blocks[i], std::move(parts[i].values), parts[i].sums, pool_.get(), spare));
  for (auto& buffer : spare) give_back(std::move(buffer));
  computed.values = reduction.take(computed.sums);
  if (wanted != nullptr && computed.values.get() != wanted) return invalid("the sum is not where it belongs");
  return {};
}

// Sums wait on a stack, each of half as many slots as the one below. When a slot completes a block, the
// waiting sums of that block are added where the slot's gradients are made, into the memory of one of them.
// The last slot completes all blocks, also those that are cut short: along the tree's right edge.
Result<Computation::Sum> Computation::add_up(Engine& engine, std::span<const Slot> slots,
                                             std::span<const float> state, Reduction::Buffer into) {
  std::vector<Sum> waiting;
  std::vector<const float*> addends;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    // The block's own slots from 0 on have the same tree below them: the block is aligned.
    const std::size_t completed =
        i + 1 == slots.size() ? waiting.size() : static_cast<std::size_t>(std::countr_one(i));
    addends.clear();
    for (std::size_t k = 1; k <= completed; ++k)
      addends.push_back(reinterpret_cast<const float*>(waiting[waiting.size() - k].values->data()));
    if (!into && completed == 0) into = take_buffer();
    Sum next{completed == 0 ? std::move(into) : std::move(waiting[waiting.size() - completed].values), {}};
    const std::span<float> floats(reinterpret_cast<float*>(next.values->data()), floats_);
    W5XDE_TRY(next.sums, engine.compute(state, slots[i], addends, floats));
    for (std::size_t k = 0; k < completed; ++k) {
      next.sums = add(waiting.back().sums, next.sums);
      if (waiting.back().values) give_back(std::move(waiting.back().values));
      waiting.pop_back();
    }
    waiting.push_back(std::move(next));
  }
  return std::move(waiting.front());
}

Status Computation::evaluate(std::span<const Slot> slots, std::span<const float> state, Computed& computed) {
  std::vector<Evaluation> evaluations(slots.size());
  W5XDE_CHECK(in_lanes(computed.lanes, slots.size(), [&](Engine& engine, std::size_t number) -> Status {
    W5XDE_TRY(evaluations[number], engine.evaluate(state, slots[number].samples));
    return {};
  }));
  // The loss too is added along the tree, or it would depend on how leases are cut.
  Reduction reduction(static_cast<std::uint32_t>(slots.size()), 0);
  std::vector<Reduction::Buffer> none;
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    const Sums sums{evaluations[i].loss_sum, evaluations[i].samples};
    W5XDE_CHECK(reduction.add({i, 1}, std::make_unique<AlignedBuffer>(), sums, nullptr, none));
    computed.counted += evaluations[i].counted;
    computed.correct += evaluations[i].correct;
  }
  (void)reduction.take(computed.sums);
  return {};
}

Reduction::Buffer Computation::take_buffer() {
  {
    const MutexLock lock(mutex_);
    if (!spare_.empty()) {
      Reduction::Buffer buffer = std::move(spare_.back());
      spare_.pop_back();
      return buffer;
    }
  }
  return std::make_unique<AlignedBuffer>(floats_ * sizeof(float));
}

void Computation::give_back(Reduction::Buffer values) {
  const MutexLock lock(mutex_);
  spare_.push_back(std::move(values));
}

}  // namespace w5xde
