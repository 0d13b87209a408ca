#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "learn/learner.h"
#include "lease/round.h"
#include "payload/encoding.h"
#include "payload/form.h"
#include "wire/messages.h"

namespace w5xde {

// The leases that one node has and has not answered, the versions that it may answer them with, and whether
// an answer fits its lease. Loop thread only.
class LeasesOut {
 public:
  struct Out {
    Grant grant;
    std::uint64_t samples = 0;
    std::uint64_t version = 0;  // to compute with
    Encoding answer;
    Reduction::Buffer memory = nullptr;  // of a shared answer: the node writes into it
  };
  struct Slots {
    std::uint64_t step = 0;
    SlotBlock block;
  };

  void add(Out lease) { out_.push_back(std::move(lease)); }
  // It was answered. Returns the memory of a shared answer, into which the node writes no more.
  Reduction::Buffer erase(LeaseId lease);
  // The node may compute with it from here on; where it reads the coordinator's own memory, that is kept as
  // it is until no lease needs it.
  void sent_version(std::uint64_t version, Learner::State state = nullptr);
  // The node is gone, and may still read and write what it shares: none of that is used again.
  void let_go_of_memory();

  // corrupt when this is no answer to a lease that the node has. `newest`: it trains with the newest
  // parameters that it has (async).
  Status check(const Contribution& contribution, const BlockShape& shape, bool newest) const;

  // The oldest one.
  std::optional<Slots> oldest() const;
  // Something can be done with this version: a lease that waits for it is computed, or found void.
  bool await(std::uint64_t version) const;
  bool has_one_of(std::uint64_t version) const;

 private:
  bool may_have_computed_with(std::uint64_t version, const Out& lease, bool newest) const;
  void forget_versions();

  std::vector<Out> out_;
  struct Sent {
    std::uint64_t version = 0;
    Learner::State state = nullptr;
  };
  std::deque<Sent> versions_;  // that it was sent since its oldest lease
};

}  // namespace w5xde
