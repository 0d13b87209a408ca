#include "coordinator/ledger.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace w5xde {

Ledger::Ledger(std::uint32_t slots, std::uint32_t block_slots_max) : slots_(slots), open_slots_(slots) {
  for (std::uint32_t first = 0; first < slots;) {
    const std::uint32_t count = std::min(slots - first, block_slots_max);
    entries_[first] = {.block = {first, count}};
    first += count;
  }
}

std::optional<SlotBlock> Ledger::lease(std::uint32_t slots_max, const Holder& holder,
                                       std::uint32_t slots_min) {
  assert(slots_max > 0);
  // The largest that fits; if all are too large, the smallest of them, so that large ones stay whole.
  Entry* best = nullptr;
  const auto better = [&](const Entry& entry) {
    if (best == nullptr) return true;
    const std::uint32_t count = entry.block.slot_count, best_count = best->block.slot_count;
    if (best_count <= slots_max) return count <= slots_max && count > best_count;
    return count < best_count;
  };
  for (auto& [first, entry] : entries_) {
    if (entry.open() && entry.block.slot_count >= slots_min && better(entry)) best = &entry;
  }
  if (best == nullptr) return std::nullopt;
  while (best->block.slot_count > slots_max) {
    const std::uint32_t half = best->block.tree_slots() / 2;
    const SlotBlock upper{best->block.first_slot + half, best->block.slot_count - half};
    best->block.slot_count = half;
    entries_[upper.first_slot] = {.block = upper};
  }
  best->holders.push_back(holder);
  open_slots_ -= best->block.slot_count;
  return best->block;
}

void Ledger::lease_again(SlotBlock block, const Holder& holder) {
  Entry& entry = entries_.at(block.first_slot);
  assert(entry.block == block && !entry.answered && !entry.holders.empty());
  entry.holders.push_back(holder);
}

bool Ledger::answer(SlotBlock block) {
  const auto found = entries_.find(block.first_slot);
  if (found == entries_.end() || found->second.block != block) return false;
  Entry& entry = found->second;
  if (entry.answered || entry.holders.empty()) return false;
  entry.answered = true;
  entry.holders.clear();
  answered_slots_ += block.slot_count;
  return true;
}

template <class Gone>
std::uint32_t Ledger::void_leases(Entry& entry, const Gone& gone) {
  if (std::erase_if(entry.holders, gone) == 0 || !entry.open()) return 0;
  open_slots_ += entry.block.slot_count;
  return entry.block.slot_count;
}

std::uint32_t Ledger::reject(SlotBlock block, LeaseId lease) {
  const auto found = entries_.find(block.first_slot);
  if (found == entries_.end() || found->second.block != block) return 0;
  return void_leases(found->second, [&](const Holder& holder) { return holder.lease == lease; });
}

std::uint32_t Ledger::release(NodeId node) {
  std::uint32_t opened = 0;
  for (auto& [first, entry] : entries_) {
    opened += void_leases(entry, [&](const Holder& holder) { return holder.node == node; });
  }
  return opened;
}

}  // namespace w5xde
