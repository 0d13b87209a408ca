// Which of the run's slots are committed, counted from its first: the data cursor, and what the audit needs.
// A run commits each once and in order, except for the few that overtake each other in an async run.
#pragma once

#include <cstdint>
#include <map>

#include "base/slot_block.h"

namespace w5xde {

class CommittedSlots {
 public:
  // All slots before `next` are committed.
  explicit CommittedSlots(std::uint64_t next = 0) : next_(next), end_(next) {}

  // Slots `first` … `first + count - 1` are committed.
  void add(std::uint64_t first, std::uint64_t count);

  // The first slot that is not committed: where a resumed run goes on.
  std::uint64_t next() const { return next_; }
  // One past the last slot that is committed.
  std::uint64_t end() const { return end_; }
  // Slots before end() that are not committed.
  std::uint64_t missing() const;
  // How many slots were committed when they already were.
  std::uint64_t twice() const { return twice_; }
  // The ranges from `slot` on that are committed.
  SlotRanges after(std::uint64_t slot) const;

 private:
  std::uint64_t next_;
  std::uint64_t end_;
  std::uint64_t twice_ = 0;
  std::map<std::uint64_t, std::uint64_t> ahead_;  // none touch each other or next_
};

}  // namespace w5xde
