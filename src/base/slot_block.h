#pragma once

#include <bit>
#include <compare>
#include <cstdint>
#include <utility>
#include <vector>

namespace w5xde {

// What a slot is computed for. The numbers are part of the wire format.
enum class Work : std::uint8_t { train = 0, evaluate = 1 };

// Slots of a run, counted from its first: the first slot and the end of each range, in order.
using SlotRanges = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// An aligned block of a step's slots: what lies under one node of the step's binary tree (learn/reduction.h).
// It is a power of two long and begins at a multiple of that, but does not reach past the step's end.
struct SlotBlock {
  std::uint32_t first_slot = 0;
  std::uint32_t slot_count = 1;

  // One past the last slot.
  constexpr std::uint32_t end() const { return first_slot + slot_count; }

  // How many slots its tree node has, those past the step's end included.
  constexpr std::uint32_t tree_slots() const { return std::bit_ceil(slot_count); }
  constexpr bool cut_off() const { return !std::has_single_bit(slot_count); }

  constexpr bool overlaps(const SlotBlock& other) const {
    return first_slot < other.end() && other.first_slot < end();
  }

  // May be a block of some step.
  constexpr bool valid() const {
    return slot_count > 0 && slot_count <= 1u << 31 && first_slot % tree_slots() == 0 && end() > first_slot;
  }

  // By place, then by size.
  constexpr auto operator<=>(const SlotBlock&) const =
      default;  // NOLINT: clang-tidy 14 sees a null pointer in it
};

}  // namespace w5xde
