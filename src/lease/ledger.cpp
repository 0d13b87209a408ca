#include "lease/ledger.h"

#include <algorithm>
#include <cassert>
#include <iterator>

namespace w5xde {

Ledger::Ledger(std::uint32_t slots, std::uint32_t block_slots_max) : slots_(slots) {
  for (std::uint32_t first = 0; first < slots;) {
    const SlotBlock block{first, std::min(slots - first, block_slots_max)};
    entries_[first] = {.block = block};
    open(block);
    first = block.end();
  }
}

void Ledger::open(SlotBlock block) {
  open_[block.slot_count].insert(block.first_slot);
  open_slots_ += block.slot_count;
}

void Ledger::close(SlotBlock block) {
  const auto same_size = open_.find(block.slot_count);
  same_size->second.erase(block.first_slot);
  if (same_size->second.empty()) open_.erase(same_size);
  open_slots_ -= block.slot_count;
}

Ledger::Entry* Ledger::find(SlotBlock block) {
  const auto found = entries_.find(block.first_slot);
  return found == entries_.end() || found->second.block != block ? nullptr : &found->second;
}

SlotBlock Ledger::split(Entry& entry) {
  const std::uint32_t half = entry.block.tree_slots() / 2;
  const SlotBlock upper{entry.block.first_slot + half, entry.block.slot_count - half};
  entries_[upper.first_slot] = {.block = upper};
  open(upper);
  entry.block.slot_count = half;
  return upper;
}

void Ledger::skip(std::uint32_t slot) {
  Entry* entry = &std::prev(entries_.upper_bound(slot))->second;
  assert(entry->open());
  close(entry->block);
  while (entry->block.slot_count > 1) {
    const SlotBlock upper = split(*entry);
    if (slot < upper.first_slot) continue;
    open(entry->block);
    close(upper);
    entry = &entries_.at(upper.first_slot);
  }
  entry->answered = true;
  ++answered_slots_;
}

bool Ledger::lease(std::uint32_t slots_max, Grant& grant, std::uint32_t slots_min) {
  assert(slots_max > 0);
  // The largest that fits; if all are too large, the smallest of them, so that large ones stay whole.
  auto best = open_.upper_bound(slots_max);
  if (best != open_.begin() && std::prev(best)->first >= slots_min) {
    --best;
  } else if (slots_min > slots_max) {
    best = open_.lower_bound(slots_min);
  }
  if (best == open_.end()) return false;
  Entry& entry = entries_.at(*best->second.begin());
  close(entry.block);
  while (entry.block.slot_count > slots_max) split(entry);
  grant.block = entry.block;
  entry.holders.push_back(grant);
  return true;
}

bool Ledger::lease_block(const Grant& grant) {
  Entry* entry = find(grant.block);
  if (entry == nullptr || !entry->open()) return false;
  close(grant.block);
  entry->holders.push_back(grant);
  return true;
}

void Ledger::lease_again(const Grant& grant) {
  Entry& entry = entries_.at(grant.block.first_slot);
  assert(entry.block == grant.block && !entry.holders.empty());
  entry.holders.push_back(grant);
}

bool Ledger::answer(SlotBlock block) {
  Entry* entry = find(block);
  if (entry == nullptr || entry->holders.empty()) return false;
  entry->answered = true;
  entry->holders.clear();
  answered_slots_ += block.slot_count;
  return true;
}

template <class Gone>
std::uint32_t Ledger::void_leases(Entry& entry, const Gone& gone) {
  if (std::erase_if(entry.holders, gone) == 0 || !entry.open()) return 0;
  open(entry.block);
  return entry.block.slot_count;
}

std::uint32_t Ledger::reject(SlotBlock block, LeaseId lease) {
  Entry* entry = find(block);
  if (entry == nullptr) return 0;
  return void_leases(*entry, [&](const Grant& holder) { return holder.lease == lease; });
}

std::uint32_t Ledger::release(NodeId node) {
  std::uint32_t opened = 0;
  for (auto& [first, entry] : entries_) {
    opened += void_leases(entry, [&](const Grant& holder) { return holder.node == node; });
  }
  return opened;
}

}  // namespace w5xde
