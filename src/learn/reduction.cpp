#include "learn/reduction.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "base/errors.h"

namespace w5xde {

namespace {

// Below this a thread hop costs more than the addition.
constexpr std::size_t kFloatsPerTask = 256 * 1024;

std::span<float> floats_of(AlignedBuffer& buffer, std::uint64_t floats) {
  return {reinterpret_cast<float*>(buffer.data()), floats};
}

SlotBlock sibling_of(SlotBlock block) {
  return {block.first_slot ^ block.slot_count, block.slot_count};
}

SlotBlock parent_of(SlotBlock block) {
  return {block.first_slot & ~block.slot_count, block.slot_count * 2};
}

}  // namespace

void add_floats(std::span<float> left, std::span<const float> right, ThreadPool* pool) {
  assert(left.size() == right.size());
  const auto add_range = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) left[i] += right[i];
  };
  if (pool == nullptr || left.size() < 2 * kFloatsPerTask) return add_range(0, left.size());
  const std::size_t tasks = (left.size() + kFloatsPerTask - 1) / kFloatsPerTask;
  pool->for_each(tasks, [&](std::size_t task) {
    add_range(task * kFloatsPerTask, std::min(left.size(), (task + 1) * kFloatsPerTask));
  });
}

Status Reduction::add(SlotBlock block, Buffer values, const Sums& sums, ThreadPool* pool,
                      std::vector<Buffer>& spare) {
  if (!block.valid() || block.first_slot >= slots_ || (block.cut_off() && block.end() != slots_))
    return invalid("slots {} + {} are not a block of a step of {}", block.first_slot, block.slot_count,
                   slots_);
  const auto next = pending_.lower_bound({block.first_slot, 0});
  const bool overlaps_next = next != pending_.end() && next->first.first_slot < block.end();
  const bool overlaps_previous = next != pending_.begin() && std::prev(next)->first.end() > block.first_slot;
  if (overlaps_next || overlaps_previous)
    return invalid("slots {} + {} are already in", block.first_slot, block.slot_count);

  block.slot_count = block.tree_slots();  // past the step's end there is nothing
  Pending node{std::move(values), sums};
  // Up the tree, as far as both halves are there or the other half is empty.
  while (block.end() < slots_ || block.first_slot != 0) {
    const SlotBlock sibling = sibling_of(block);
    if (sibling.first_slot < slots_) {
      const auto found = pending_.find(sibling);
      if (found == pending_.end()) break;
      Pending other = std::move(found->second);
      pending_.erase(found);
      if (sibling.first_slot < block.first_slot) std::swap(node, other);
      if (watch_ && parent_of(block).slot_count >= slots_) {
        watch_({floats_of(*node.values, floats_), node.sums},
               {floats_of(*other.values, floats_), other.sums});
      }
      add_floats(floats_of(*node.values, floats_).subspan(taken_),
                 floats_of(*other.values, floats_).subspan(taken_), pool);
      node.sums = w5xde::add(node.sums, other.sums);
      spare.push_back(std::move(other.values));
    }
    block = parent_of(block);
  }
  pending_.emplace(block, std::move(node));
  return {};
}

bool Reduction::complete() const {
  return pending_.size() == 1 && pending_.begin()->first.first_slot == 0 &&
         pending_.begin()->first.end() >= slots_;
}

Reduction::Buffer Reduction::take(Sums& sums) {
  assert(complete());
  Pending root = std::move(pending_.begin()->second);
  pending_.clear();
  taken_ = 0;
  sums = root.sums;
  return std::move(root.values);
}

Reduction::Part Reduction::next_part(std::span<const Landing> landing) const {
  std::uint64_t slots = 0, landed = floats_, samples = 0;
  for (const auto& [block, pending] : pending_) {
    slots += std::min(block.end(), slots_) - block.first_slot;
    samples += pending.sums.samples;
  }
  for (const Landing& block : landing) {
    slots += std::min(block.block.end(), slots_) - block.block.first_slot;
    landed = std::min(landed, block.landed);
    samples += block.samples;
  }
  if (slots < slots_ || landed <= taken_) return {};
  return {taken_, landed, samples};
}

std::span<const float> Reduction::take_part(const Part& part, std::span<const Landing> landing,
                                            ThreadPool* pool) {
  const std::uint64_t count = part.last - part.first;
  Blocks blocks;
  for (const auto& [block, pending] : pending_)
    blocks[block] = floats_of(*pending.values, floats_).subspan(part.first, count);
  for (const Landing& block : landing)
    blocks[{block.block.first_slot, block.block.tree_slots()}] = block.values.subspan(part.first, count);
  taken_ = part.last;
  return sum_below({0, std::bit_ceil(slots_)}, blocks, pool);
}

std::span<float> Reduction::sum_below(SlotBlock block, const Blocks& blocks, ThreadPool* pool) const {
  if (const auto found = blocks.find(block); found != blocks.end()) return found->second;
  assert(block.slot_count > 1);
  const std::uint32_t half = block.slot_count / 2;
  const auto left = sum_below({block.first_slot, half}, blocks, pool);
  const SlotBlock other{block.first_slot + half, half};
  if (other.first_slot < slots_) add_floats(left, sum_below(other, blocks, pool), pool);
  return left;
}

}  // namespace w5xde
