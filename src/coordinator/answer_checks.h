#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/leases_out.h"
#include "lease/doubts.h"

namespace w5xde {

// Whether a bad answer is its node's fault or the run's: a node may be broken, or the run has diverged, or
// nobody can compute it. Nodes are known by their identity, which stays when they leave and come back.
class AnswerChecks {
 public:
  // This contribution is not finite. `alone`: no other node is on time to compute the same. Returns the error
  // that the run ends with, if it has diverged.
  std::optional<Error> not_finite(const Contribution& contribution, NodeId node, const std::string& identity,
                                  bool alone);
  // This one is finite, and counts. Returns the nodes that it refutes.
  std::vector<NodeId> refuted_by(const Contribution& contribution, const std::string& identity) {
    return doubts_.refuted_by(contribution.step, contribution.block, identity);
  }
  static Error refuted(const Contribution& contribution);

  // A node left because it could not compute a lease. True: another one could not either.
  bool unable(const std::string& identity, const std::string& reason,
              const std::optional<LeasesOut::Slots>& slots);

 private:
  struct Unable {
    std::string who;
    std::string reason;
    std::optional<LeasesOut::Slots> slots;  // of its oldest lease
  };

  Doubts doubts_;
  std::deque<Unable> unable_;  // the last ones
};

}  // namespace w5xde
