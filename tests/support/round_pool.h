#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "lease/round.h"

namespace w5xde {

inline constexpr double kSlotSeconds = 0.001;

// A round with a clock of its own, and nodes that answer when told to.
class RoundPool {
 public:
  explicit RoundPool(const Round::Options& options) : round(options) {}

  void join(NodeId node, const Place& place = {}, double swap_in_seconds = 0) {
    round.join(node, place, swap_in_seconds);
    lease();
  }

  void leave(NodeId node) {
    round.leave(node);
    std::erase_if(out, [&](const Grant& grant) { return grant.node == node; });
    lease();
  }

  void lease() {
    for (const Grant& grant : round.grants(now)) {
      out.push_back(grant);
      leased.push_back(grant);
    }
  }

  // The node answers its first lease that it can compute now. False: it has none.
  bool answer(NodeId node, double slot_seconds = kSlotSeconds) {
    const auto found = std::ranges::find_if(out, [&](const Grant& grant) {
      return grant.node == node &&
             (asynchronous || grant.work == Work::evaluate || grant.step <= round.front_step());
    });
    if (found == out.end()) return false;
    const Grant grant = *found;
    out.erase(found);
    const Computing computing{slot_seconds * grant.block.slot_count,
                              std::min(grant.lanes, grant.block.slot_count)};
    const auto verdict = round.answer(node, grant.lease, grant.block, computing, now);
    EXPECT_NE(verdict, Round::Verdict::unknown);
    if (verdict == Round::Verdict::accepted && grant.work == Work::train) count(grant);
    if (!asynchronous && round.front_complete()) {
      round.commit(now);
      ++commits;
    }
    lease();
    return true;
  }

  void count(const Grant& grant) {
    for (std::uint32_t slot = grant.block.first_slot; slot < grant.block.end(); ++slot) {
      EXPECT_TRUE(committed.insert({grant.step, slot}).second)
          << "slot " << slot << " of step " << grant.step;
    }
  }

  std::uint32_t slots_of(NodeId node, std::uint64_t step) const {
    std::uint32_t slots = 0;
    for (const Grant& grant : leased) {
      if (grant.node == node && grant.step == step) slots += grant.block.slot_count;
    }
    return slots;
  }

  Round round;
  Instant now{};
  bool asynchronous = false;
  std::vector<Grant> out;     // not answered
  std::vector<Grant> leased;  // ever
  std::set<std::pair<std::uint64_t, std::uint32_t>> committed;
  std::uint64_t commits = 0;
};

inline void run_steps(RoundPool& pool, std::span<const NodeId> nodes, std::uint64_t steps) {
  const std::uint64_t end = pool.commits + steps;
  while (pool.commits < end) {
    pool.now += std::chrono::milliseconds(1);
    for (const NodeId node : nodes) pool.answer(node);
    pool.lease();
    ASSERT_LT(pool.now, Instant() + std::chrono::hours(1)) << "the pool is stuck";
  }
}

}  // namespace w5xde
