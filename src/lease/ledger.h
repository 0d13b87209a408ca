// Who has which slots of a step.
//
// A slot is open, leased, or answered. Slots move in aligned blocks: a lease takes a block, and cuts a larger
// one when it has to. A straggler's block may be leased to a second node; the first answer counts, and no
// slot is ever answered twice.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/slot_block.h"

namespace w5xde {

using NodeId = std::uint32_t;
using LeaseId = std::uint64_t;

// A lease that is out: who holds which slots of which step, and since when.
struct Grant {
  NodeId node = 0;
  LeaseId lease = 0;
  Instant since;
  Work work = Work::train;
  std::uint64_t step = 0;
  SlotBlock block;
  std::uint32_t lanes = 1;  // that the node may compute it in

  bool is_of(Work other_work, std::uint64_t other_step) const {
    return work == other_work && step == other_step;
  }
};

class Ledger {
 public:
  struct Entry {
    SlotBlock block;
    bool answered = false;
    std::vector<Grant> holders;  // none: open, or answered

    bool open() const { return !answered && holders.empty(); }
  };

  // No block has more than `block_slots_max` slots, a power of two; the step's end may cut off the last one.
  explicit Ledger(std::uint32_t slots, std::uint32_t block_slots_max = 1u << 31);

  std::uint32_t slots() const { return slots_; }
  std::uint32_t open_slots() const { return open_slots_; }
  std::uint32_t answered_slots() const { return answered_slots_; }
  bool complete() const { return answered_slots_ == slots_; }

  // Leases the largest open block of at most slots_max slots (at least 1), cut from a larger one if need be,
  // and sets grant.block. False when no open block has as many as slots_min.
  bool lease(std::uint32_t slots_max, Grant& grant, std::uint32_t slots_min = 1);
  // Leases the very block that `grant` names. False: it is not open, or was cut since.
  bool lease_block(const Grant& grant);
  // Leases a block that is out once more.
  void lease_again(const Grant& grant);

  // True: the block is answered now, and other leases of it are void. False: it was answered before, or is no
  // block that was leased.
  bool answer(SlotBlock block);
  // This slot, which is open, needs no answer: it was committed before the run was resumed.
  void skip(std::uint32_t slot);
  // An answer that is of no use: the lease is void, and the block open again unless another node has it too.
  // Returns how many slots were opened, as release() does.
  std::uint32_t reject(SlotBlock block, LeaseId lease);
  // All leases of a node that is gone are void.
  std::uint32_t release(NodeId node);

  // In the order of their slots.
  const std::map<std::uint32_t, Entry>& entries() const { return entries_; }

 private:
  // Null where this is no block, or was cut since.
  Entry* find(SlotBlock block);
  // Cuts a block that was just closed in two. It keeps the lower part; the upper one is open.
  SlotBlock split(Entry& entry);
  template <class Gone>
  std::uint32_t void_leases(Entry& entry, const Gone& gone);
  void open(SlotBlock block);
  void close(SlotBlock block);

  std::uint32_t slots_;
  std::uint32_t open_slots_ = 0;
  std::uint32_t answered_slots_ = 0;
  std::map<std::uint32_t, std::set<std::uint32_t>> open_;  // by slot count: first slots of the open blocks
  std::map<std::uint32_t, Entry> entries_;  // by first slot; together they are every slot of the step, once
};

}  // namespace w5xde
