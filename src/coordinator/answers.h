#pragma once

#include <deque>
#include <optional>
#include <string>

#include "base/clock.h"
#include "coordinator/sessions.h"
#include "coordinator/tally.h"
#include "lease/doubts.h"
#include "lease/round.h"

namespace w5xde {

// What an answer means: whether it counts, and whether a bad one is its node's fault or the run's. A node may
// be broken, or the run has diverged, or nobody can compute it. Nodes are known by their identity, which
// stays when they leave and come back. Loop thread only.
class Answers {
 public:
  Answers(const Clock& clock, Sessions& sessions, Round& round, Tally& tally)
      : clock_(clock), sessions_(sessions), round_(round), tally_(tally) {}

  enum class Quality { good, too_stale, not_finite };
  // True: it counts. `diverged`: the run cannot go on. Another error: its node is broken. Nodes that it
  // refutes are dropped.
  Result<bool> counts(Session& session, const Contribution& contribution, Quality quality);
  // The same, of a part of an evaluation.
  Result<bool> evaluation_counts(Session& session, const Contribution& contribution);
  // A node found a lease void.
  Status is_void(Session& session, const Contribution& contribution);

  // A node has left because it could not compute a lease, for this reason. True: nobody can.
  bool nobody_can(const Session& session, const std::string& reason);

 private:
  struct Unable {
    std::string who;
    std::string reason;
    std::optional<LeasesOut::Slots> slots;  // of its oldest lease
  };

  Round::Verdict answer(const Session& session, const Contribution& contribution);
  Status bad_answer(Session& session, const Contribution& contribution);

  const Clock& clock_;
  Sessions& sessions_;
  Round& round_;
  Tally& tally_;
  Doubts doubts_;
  std::deque<Unable> unable_;  // the last ones
};

}  // namespace w5xde
