#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

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
  };
  struct Slots {
    std::uint64_t step = 0;
    SlotBlock block;
  };

  void add(const Out& lease) { out_.push_back(lease); }
  // It was answered.
  void erase(LeaseId lease);
  void sent_version(std::uint64_t version);

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
  std::deque<std::uint64_t> versions_;  // that it was sent since its oldest lease
};

}  // namespace w5xde
