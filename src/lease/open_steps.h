#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/slot_block.h"
#include "lease/ledger.h"
#include "lease/step_slots.h"

namespace w5xde {

// A step that is open, or an evaluation.
struct Step {
  Work work = Work::train;
  std::uint64_t number = 0;
  Instant begun;
  Ledger ledger;
};

// The steps whose slots are leased now, each with its ledger, and the evaluation, if there is one. sync has
// two: the front step, which is computed, and the one ahead, whose leases are on their way.
class OpenSteps {
 public:
  struct Options {
    StepSlots::Options slots;
    SlotRanges slots_ahead;  // async: slots of the run that are committed already
    std::uint32_t lease_slots_max = 1u
                                    << 31;  // no lease has more, a power of two: it would not fit in a frame
    bool halves = false;  // no lease is of a whole step: its two halves are computed by themselves
  };
  explicit OpenSteps(Options options);

  std::deque<Step>& training() { return steps_; }
  const std::deque<Step>& training() const { return steps_; }
  std::optional<Step>& evaluation() { return evaluation_; }
  const std::optional<Step>& evaluation() const { return evaluation_; }
  // The step, or null when it is not open.
  Step* find(Work work, std::uint64_t number);

  StepSlots& slots() { return step_slots_; }
  const StepSlots& slots() const { return step_slots_; }
  // sync: the step that is computed; async: the oldest that is open.
  std::uint64_t front() const { return front_; }
  bool front_complete() const;
  // Every step of the run has been opened.
  bool all_opened() const { return step_slots_.slots_of(next_) == 0; }

  // Opens the next step.
  void open(Instant now);
  // sync: the front step is done; the next one begins.
  void close_front(Instant now);
  // async: this step is done.
  void close(std::uint64_t number);
  // async: the last one that was opened is done already.
  void drop_complete_back();
  // The node's leases are void. Returns how many training slots are open again.
  std::uint32_t release(NodeId node);

  // What does not fit together, or nothing. `holds`: whether a node holds this lease. For tests.
  std::string imbalance(const std::function<bool(const Grant&)>& holds) const;

 private:
  Ledger ledger_of(std::uint64_t step) const;
  void find_front() { front_ = steps_.empty() ? next_ : steps_.front().number; }

  Options options_;
  StepSlots step_slots_;
  std::deque<Step> steps_;  // by number
  std::optional<Step> evaluation_;
  std::uint64_t front_;
  std::uint64_t next_;  // to be opened
};

}  // namespace w5xde
