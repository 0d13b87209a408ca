#pragma once

#include <bit>
#include <compare>
#include <cstdint>

namespace w5xde {

// An aligned block of a step's slots: slot_count is a power of two and first_slot a multiple of it, so a
// block is one node of the step's binary tree (learn/reduction.h). Leases are cut along it, contributions are
// added along it.
struct SlotBlock {
  std::uint32_t first_slot = 0;
  std::uint32_t slot_count = 1;

  // One past the last slot.
  constexpr std::uint32_t end() const { return first_slot + slot_count; }

  constexpr bool valid() const {
    return std::has_single_bit(slot_count) && first_slot % slot_count == 0 && end() > first_slot;
  }

  // By place, then by size.
  constexpr auto operator<=>(const SlotBlock&) const =
      default;  // NOLINT: clang-tidy 14 sees a null pointer in it
};

}  // namespace w5xde
