#include "node/computation.h"

#include <algorithm>
#include <array>
#include <bit>

#include "learn/seeds.h"

namespace w5xde {

namespace {

// The samples `first` … of a tensor of samples.
TensorView rows_of(const TensorDescriptor& tensor, Bytes bytes, std::uint64_t first, std::uint32_t count) {
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
  std::uint64_t first = 0;
  for (const std::uint32_t count : lease.slot_samples) {
    const auto slot = static_cast<std::uint32_t>(lease.block.first_slot + slots.size());
    slots.push_back({{rows_of(lease.tensors[0], views[0].bytes(), first, count),
                      rows_of(lease.tensors[1], views[1].bytes(), first, count)},
                     slot_seed(lease.seed, slot)});
    first += count;
  }
  return slots;
}

}  // namespace

Result<Computed> Computation::run(const Lease& lease, Bytes payload, std::span<const float> state) {
  const Instant begun = SteadyClock().now();
  const auto slots = slots_of(lease, payload);
  Computed computed;
  W5XDE_CHECK(lease.work == Work::train ? train(slots, state, computed) : evaluate(slots, state, computed));
  computed.busy = SteadyClock().now() - begun;
  return computed;
}

// Two slots at a time. Sums wait on a stack, as the digits of a binary counter do: each is of half as many
// slots as the one below. A pair that completes a block takes the sums of the block's other parts with it, in
// one pass over memory. What waits in the end, where the block is cut off, lies along the tree's right edge.
Status Computation::train(std::span<const Slot> slots, std::span<const float> state, Computed& computed) {
  struct Waiting {
    Reduction::Buffer values;
    Sums sums;
  };
  std::vector<Waiting> waiting;
  std::vector<const float*> addends;
  const std::size_t at_once = std::min<std::size_t>(2, slots.size());
  for (std::size_t i = 0; i * at_once < slots.size(); ++i) {
    // The block's own slots from 0 on have the same tree below them: the block is aligned.
    const auto completed = static_cast<std::size_t>(std::countr_one(i));
    addends.clear();
    for (std::size_t k = 1; k <= completed; ++k) {
      addends.push_back(reinterpret_cast<const float*>(waiting[waiting.size() - k].values->data()));
    }
    Waiting next{completed == 0 ? take_buffer() : std::move(waiting[waiting.size() - completed].values), {}};
    const std::span<float> floats(reinterpret_cast<float*>(next.values->data()), floats_);
    const auto pair = slots.subspan(i * at_once, std::min(at_once, slots.size() - i * at_once));
    W5XDE_TRY(next.sums, engine_.compute(state, pair, addends, floats));
    for (std::size_t k = 0; k < completed; ++k) {
      next.sums = add(waiting.back().sums, next.sums);
      if (waiting.back().values) spare_.push_back(std::move(waiting.back().values));
      waiting.pop_back();
    }
    waiting.push_back(std::move(next));
  }
  while (waiting.size() > 1) {
    Waiting right = std::move(waiting.back());
    waiting.pop_back();
    const auto floats_of = [&](Waiting& part) {
      return std::span(reinterpret_cast<float*>(part.values->data()), floats_);
    };
    add_floats(floats_of(waiting.back()), floats_of(right), nullptr);
    waiting.back().sums = add(waiting.back().sums, right.sums);
    spare_.push_back(std::move(right.values));
  }
  computed.values = std::move(waiting.front().values);
  computed.sums = waiting.front().sums;
  return {};
}

Status Computation::evaluate(std::span<const Slot> slots, std::span<const float> state, Computed& computed) {
  // The loss is a sum of floating-point numbers too: along the tree, or it would depend on how leases are
  // cut.
  Reduction reduction(static_cast<std::uint32_t>(slots.size()), 0);
  std::vector<Reduction::Buffer> none;
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    W5XDE_TRY(const Evaluation evaluation, engine_.evaluate(state, slots[i].samples));
    const Sums sums{evaluation.loss_sum, evaluation.samples};
    W5XDE_CHECK(reduction.add({i, 1}, std::make_unique<AlignedBuffer>(), sums, nullptr, none));
    computed.correct += evaluation.correct;
  }
  (void)reduction.take(computed.sums);
  return {};
}

Reduction::Buffer Computation::take_buffer() {
  if (spare_.empty()) return std::make_unique<AlignedBuffer>(floats_ * sizeof(float));
  Reduction::Buffer buffer = std::move(spare_.back());
  spare_.pop_back();
  return buffer;
}

}  // namespace w5xde
