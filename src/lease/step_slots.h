// How many slots each step has, and which of the run's slots are its own.
//
// A step begins at the slot where the one before ended. Steps have one size, but for the last, which has what
// is left. Where the global batch grows, steps are larger from some step on; growth is told before that step
// is opened, so that a step never changes its size.
#pragma once

#include <cstdint>
#include <vector>

namespace w5xde {

class StepSlots {
 public:
  struct Options {
    std::uint32_t slots = 8;        // a step, at first
    std::uint64_t first_step = 0;   // where a resumed run goes on,
    std::uint64_t first_slot = 0;   // and with which slot that step begins
    std::uint64_t slots_total = 0;  // the run's; 0: no end in slots
    std::uint64_t steps_total = 0;  // the run's; 0: no end in steps
  };

  explicit StepSlots(const Options& options);

  // From this step on, which is later than that of any growth before. It may be earlier than first_step.
  void grow(std::uint64_t step, std::uint32_t slots);

  // As many as the step has; 0 past the run's end.
  std::uint32_t slots_of(std::uint64_t step) const;
  // As many as it would have if the run did not end in it.
  std::uint32_t full_slots_of(std::uint64_t step) const { return size_of(step).slots; }
  // Counted from the run's first; of first_step and those after it. Past the run's end: the end.
  std::uint64_t first_slot_of(std::uint64_t step) const;
  // How many steps the run has if it does not grow any more; 0: no end.
  std::uint64_t steps() const;

 private:
  struct Size {
    std::uint64_t step = 0;  // the first of this size
    std::uint32_t slots = 0;
  };
  const Size& size_of(std::uint64_t step) const;

  Options options_;
  std::vector<Size> sizes_;  // by step, from step 0 on
};

}  // namespace w5xde
