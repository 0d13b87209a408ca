#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "base/mode.h"
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

// What a round leases, and to whom.
struct RoundOptions {
  Mode mode = Mode::sync;
  std::uint32_t slots = 8;                   // of a step
  std::uint64_t slots_total = 0;             // of the run; 0: no end. The last step may be shorter
  std::uint64_t first_step = 0;              // a resumed run goes on here,
  std::uint64_t first_slot = 0;              // with this slot,
  SlotRanges slots_ahead = {};               // async: but not with these, which are committed already
  std::uint32_t grain = 0;                   // slots of every lease, a power of two; 0: as suits the node
  std::uint64_t steps_total = 0;             // of the run; 0: no end in steps
  std::uint32_t lease_slots_max = 1u << 31;  // a power of two. A larger lease would not fit in a frame
  bool halves = false;   // no lease is of a whole step: its two halves are computed by themselves
  bool fastest = false;  // sync: as Roster::Options has it
  bool lanes = true;     // likewise
};

// The steps whose slots are leased now, each with its ledger, and the evaluation, if there is one. sync has
// two: the front step, which is computed, and the one ahead, whose leases are on their way.
class OpenSteps {
 public:
  explicit OpenSteps(const RoundOptions& options);

  std::deque<Step>& training() { return steps_; }
  const std::deque<Step>& training() const { return steps_; }
  std::optional<Step>& evaluation() { return evaluation_; }
  const std::optional<Step>& evaluation() const { return evaluation_; }
  // The step, or null when it is not open.
  Step* find(Work work, std::uint64_t number);
  // When the lease's step began, if that is still open.
  std::optional<Instant> begun(const Grant& grant);

  StepSlots& slots() { return step_slots_; }
  const StepSlots& slots() const { return step_slots_; }
  // sync: the step that is computed; async: the oldest that is open.
  std::uint64_t front() const { return steps_.empty() ? next_ : steps_.front().number; }
  bool front_complete() const { return !steps_.empty() && steps_.front().ledger.complete(); }
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

 private:
  Ledger ledger_of(std::uint64_t step) const;

  RoundOptions options_;
  StepSlots step_slots_;
  std::deque<Step> steps_;  // by number
  std::optional<Step> evaluation_;
  std::uint64_t next_;  // to be opened
};

}  // namespace w5xde
