// Who is late, and who computes the same slots in its place.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "lease/open_steps.h"
#include "lease/roster.h"

namespace w5xde {

// A block that is waited for, of a step of which nothing is left to begin.
struct Straggler {
  Step* step = nullptr;
  SlotBlock block;
  bool late = false;  // else: of a node that was never measured
};

// A block whose answer was of no use, while its step is open: another node's answer is wanted.
struct Refusal {
  NodeId by = 0;
  std::uint64_t step = 0;
  SlotBlock block;
  bool asked = false;  // another node was
};
// The node's answer to a block of the step that overlaps this one was refused.
bool was_refused(const std::vector<Refusal>& refusals, NodeId by, std::uint64_t step, SlotBlock block);

// Marks nodes whose answers are overdue as late. Returns what late and never measured nodes hold, step by
// step, what is late first. `ahead`: leases of steps after the front one cannot be answered yet (sync).
std::vector<Straggler> find_stragglers(Roster& roster, OpenSteps& steps, bool ahead, Instant now);

// A node that can compute the block as well: one that holds nothing, or else one that holds only leases of
// later steps. Nodes whose answer to it was refused come last.
std::optional<NodeId> helper_for(const Straggler& straggler, const Roster& roster,
                                 const std::vector<Refusal>& refusals);

// One node that is on time computes the block, and will answer: no helper is needed.
bool is_expected(const Straggler& straggler, const Roster& roster);

}  // namespace w5xde
